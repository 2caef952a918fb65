import { OpmateError, UsageError } from '../../core/errors.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import type { JsonValue } from '../../document/json.js';
import { sortedByBytes } from '../../core/order.js';
import { SemverError } from '../../core/semver.js';
import { parseConstraint } from '../../core/semver-range.js';
import { encodeYaml } from '../../document/yaml.js';
import { type BundleVersion, parseBundleVersion } from '../../graph/resolve-content.js';
import { readableVersion } from '../../graph/upgrade-graph.js';
import { parseLabelSelector } from '../../graph/resolve-selector.js';
import {
  type DeprecationNotice,
  type Resolution,
  type ResolveCatalog,
  type ResolveRequest,
  resolveBundle,
} from '../../graph/resolve.js';
import { type NamedCatalog, parseNamedCatalog, readNamedCatalog } from './resolve-catalogs.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { useSession } from '../session.js';
import { formatTable } from '../table.js';
import { tellFindings } from './findings.js';

interface ResolveOptions extends GlobalOptions {
  catalog?: string[];
  version?: string;
  channel?: string[];
  installed?: string;
  policy?: string;
  selector?: string;
  failOnDeprecated?: boolean;
  output?: string;
}

/** Limits of a ClusterExtension. */
const maxRange = 64;
const maxChannels = 256;
const policies = ['catalog-provided', 'self-certified'] as const;

/**
 * `opmate bundle resolve`: the bundle that OLM v1 would install, and why not the others. Exit code 3 where there is
 * none, where catalogs tie, where OLM v1 would not install it, or with `--fail-on-deprecated`.
 */
export async function bundleResolve(
  context: CommandContext,
  packageName: string,
  given: GlobalOptions,
): Promise<number> {
  const options = given as ResolveOptions;
  const output = resolveOutputOf(options.output);
  checkPackageName(packageName);
  const { request, installed } = readRequest(packageName, options);
  const catalogs = chooseCatalogs(options);
  return useSession(context, options, async (session) => {
    const contents: ResolveCatalog[] = [];
    for (const catalog of catalogs) {
      contents.push(await readNamedCatalog(catalog, packageName, session));
    }
    const known = installed && findInstalled(installed, contents);
    const resolution = resolveBundle({ ...request, installed: known }, contents);
    for (const notice of resolution.deprecations) session.logger.log('warn', describeNotice(notice));
    session.logger.close();
    const asked = { ...request, installed: known && { name: known.name, version: known.version.text } };
    const text = output === 'text' ? textOf(resolution) : dataOf({ request: asked, ...resolution }, output);
    await writeAll(context.stdout, text, session.signal);
    if (resolution.outcome !== 'resolved') {
      await tellFindings(context, [
        { severity: 'error', code: 'resolution', problem: resolution.reason, hint: hintOf(resolution) },
      ]);
      return exitCodes.findings;
    }
    const isOutdated = resolution.deprecations.some(({ kind }) => kind !== 'installed');
    return options.failOnDeprecated === true && isOutdated ? exitCodes.findings : exitCodes.done;
  });
}

/** The value of `--output` of these commands. Throws UsageError. */
export function resolveOutputOf(given: string | undefined): 'text' | 'json' | 'yaml' {
  const output = (['text', 'json', 'yaml'] as const).find((known) => known === (given ?? 'text'));
  if (output !== undefined) return output;
  throw new UsageError(`invalid --output value ${quoteGo(given ?? '')}, expected (text|json|yaml)`);
}

/** Throws UsageError for a name that no package of OLM v1 can have. */
export function checkPackageName(name: string): void {
  const label = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?';
  if (name.length <= 253 && new RegExp(`^${label}(?:\\.${label})*$`).test(name)) return;
  throw new UsageError(`package ${quoteGo(name)}: not a DNS-1123 subdomain of up to 253 characters`);
}

/** Reads `NAME` or `NAME@VERSION`. Throws UsageError. */
export function parseInstalled(
  text: string,
  what: string,
): { name: string; version: BundleVersion | undefined } {
  const at = text.lastIndexOf('@');
  const name = at < 0 ? text : text.slice(0, at);
  if (name === '') throw new UsageError(`${what}: no bundle is named`);
  if (at < 0) return { name, version: undefined };
  try {
    return { name, version: parseBundleVersion(text.slice(at + 1)) };
  } catch (error) {
    if (!(error instanceof SemverError)) throw error;
    throw new UsageError(`${what}: version ${quoteGo(text.slice(at + 1))}: ${error.message}`);
  }
}

/** Either form of data, as the option says. */
export function dataOf(value: object, output: 'json' | 'yaml'): string {
  const data = JSON.parse(JSON.stringify(value)) as JsonValue;
  return output === 'json' ? `${encodeGoJson(data, { indent: 2 })}\n` : encodeYaml(data);
}

function readRequest(
  packageName: string,
  options: ResolveOptions,
): { request: ResolveRequest; installed: ReturnType<typeof parseInstalled> | undefined } {
  const { version: versionRange = '', channel: channels = [], installed } = options;
  const policy = policies.find((known) => known === (options.policy ?? policies[0]));
  if (policy === undefined) {
    throw new UsageError(
      `invalid --policy value ${quoteGo(options.policy ?? '')}, expected (${policies.join('|')})`,
    );
  }
  if (versionRange.length > maxRange) {
    throw new UsageError(`--version: longer than ${maxRange} characters, which OLM v1 does not take`);
  }
  if (channels.length > maxChannels) {
    throw new UsageError(`--channel: more than ${maxChannels} of them, which OLM v1 does not take`);
  }
  try {
    if (versionRange !== '') parseConstraint(versionRange);
  } catch (error) {
    if (!(error instanceof SemverError)) throw error;
    throw new UsageError(`desired version range ${quoteGo(versionRange)} is invalid: ${error.message}`, {
      hint: 'write e.g. 1.2.3, 1.2.x, ~1.2, ^1 or ">=1.2, <2"',
    });
  }
  return {
    request: { packageName, versionRange, channels, policy },
    installed: installed === undefined ? undefined : parseInstalled(installed, `--installed ${installed}`),
  };
}

function chooseCatalogs(options: ResolveOptions): NamedCatalog[] {
  const catalogs = (options.catalog ?? []).map(parseNamedCatalog);
  if (catalogs.length === 0) {
    throw new UsageError('--catalog is missing', { hint: 'name at least one, e.g. --catalog ./catalog' });
  }
  const names = catalogs.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new UsageError(`--catalog: two catalogs are named ${twice}`);
  if (options.selector === undefined) return catalogs;
  const isSelected = readSelector(options.selector);
  const selected = catalogs.filter(({ labels }) => isSelected(labels));
  if (selected.length > 0) return selected;
  throw new UsageError(`--selector ${options.selector}: no catalog has such labels`);
}

function readSelector(text: string): ReturnType<typeof parseLabelSelector> {
  try {
    return parseLabelSelector(text);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw new UsageError(`--${error.message}`, { hint: error.hint });
  }
}

/** The installed bundle with the version that the catalogs give it, where the user gives none. */
function findInstalled(
  { name, version }: { name: string; version: BundleVersion | undefined },
  catalogs: readonly ResolveCatalog[],
): { name: string; version: BundleVersion } {
  if (version !== undefined) return { name, version };
  const found = new Map<string, BundleVersion>();
  for (const { content } of catalogs) {
    for (const bundle of content.bundles) {
      const known = bundle.name === name ? readableVersion(bundle) : undefined;
      if (known !== undefined) found.set(JSON.stringify([known.text, known.release.map(String)]), known);
    }
  }
  const [only, ...more] = found.values();
  if (only !== undefined && more.length === 0) return { name, version: only };
  const problem = only === undefined ? 'no catalog has it' : 'catalogs give it several versions';
  throw new OpmateError('NOT_FOUND', `installed bundle ${quoteGo(name)}: ${problem}`, {
    hint: `say which version it has: --installed ${name}@VERSION`,
  });
}

function describeNotice({ kind, name, message }: DeprecationNotice): string {
  const what = kind === 'installed' ? 'installed bundle' : kind;
  return `${what} ${name} is deprecated: ${message}`;
}

function hintOf({ outcome, successors }: Resolution): string | undefined {
  if (outcome === 'ambiguous') return 'give the catalogs different priorities, or choose one with --selector';
  if (outcome === 'unsupported')
    return 'choose another version or channel; OLM v1 does not take the next one';
  if (successors.length === 0) return undefined;
  const offers = successors.map(({ stream, name, channels, catalog }) => {
    return `${stream}-stream: ${name} (channel ${channels.join(', ')} of ${catalog})`;
  });
  return `upgrades that there are: ${offers.join('; ')}`;
}

function textOf({ chosen, reason, catalogs }: Resolution): string {
  let text = '';
  if (chosen !== undefined) {
    const rows: [string, string][] = [
      ['bundle:', chosen.name],
      ['version:', chosen.version],
      ['image:', chosen.image],
      ['catalog:', chosen.catalog],
      ['channels:', sortedByBytes(chosen.channels).join(', ')],
      ['why:', reason],
    ];
    const [first, ...rest] = rows;
    text += `${formatTable(first as [string, string], rest)}\n`;
  }
  text += formatTable(
    ['CATALOG', 'PRIORITY', 'PACKAGE', 'BUNDLES', 'MATCHED', 'RESULT'],
    catalogs.map(({ name, priority, isPackageFound, total, matched, verdict }) => [
      name,
      String(priority),
      isPackageFound ? 'found' : 'not found',
      String(total),
      String(matched),
      verdict,
    ]),
  );
  if (catalogs.every(({ candidates }) => candidates.length === 0)) return text;
  return `${text}\n${formatTable(
    ['CATALOG', 'BUNDLE', 'VERSION', 'DEPRECATED', 'RESULT'],
    catalogs.flatMap(({ name: catalog, candidates }) =>
      candidates.map(({ name, version, deprecation, reasons }) => [
        catalog,
        name,
        version === '' ? '-' : version,
        deprecation === undefined ? '-' : 'yes',
        reasons.length === 0 ? 'chosen' : reasons.join('; '),
      ]),
    ),
  )}`;
}
