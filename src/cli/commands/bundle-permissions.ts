import { convertRegistryV1 } from '../../bundle/plain/convert.js';
import { installerRoles } from '../../bundle/plain/installer.js';
import type { PlainObject } from '../../bundle/plain/object.js';
import { type Right, rightsBeyond, rightsOf } from '../../bundle/plain/rights.js';
import { riskNames } from '../../bundle/plain/risks.js';
import { writeObjects } from '../../bundle/plain/write.js';
import { UsageError } from '../../core/errors.js';
import { encodeGoJson, quoteGo } from '../../core/go-json.js';
import type { JsonObject, JsonValue } from '../../core/json.js';
import { sortedByBytes } from '../../core/order.js';
import { encodeYaml } from '../../core/yaml.js';
import type { Pin } from '../../source/content-types.js';
import type { ContentFlags } from '../content-options.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { useSession } from '../session.js';
import { formatTable } from '../table.js';
import { inSource, tellFindings } from './bundle-findings.js';
import { type SourceOpener, pinValues, useSources } from '../bundle-content.js';

interface PermissionsOptions extends ContentFlags {
  installNamespace?: string;
  watchNamespace?: string[];
  output?: string;
  diff?: string;
  failOn?: string[];
}

const outputs = ['table', 'json', 'yaml', 'rbac', 'installer'] as const;

/**
 * `opmate bundle permissions`: what the accounts of an operator hold once it is installed; with `--diff`, what they
 * hold beyond an older bundle, and no more. Exit code 3 where a risk of `--fail-on` is among what is shown, or the
 * bundle cannot be installed so.
 */
export async function bundlePermissions(
  context: CommandContext,
  reference: string,
  given: GlobalOptions,
): Promise<number> {
  const options = given as PermissionsOptions;
  const output = outputs.find((known) => known === (options.output ?? 'table'));
  checkOptions(options, output);
  return useSession(context, options, async (session) => {
    const { current, older, pins } = await useSources(session, options, async (sources) => ({
      current: await convert(context, reference, options, sources),
      older: options.diff === undefined ? undefined : await convert(context, options.diff, options, sources),
      pins: sources.pins,
    }));
    session.logger.close();
    if (current === undefined || (options.diff !== undefined && older === undefined))
      return exitCodes.findings;
    const report = reportOf(current, older);
    await writeAll(context.stdout, textOf(report, current, pins, output ?? 'table'), session.signal);
    const wanted = new Set(options.failOn);
    const risky = report.added.filter(({ risks }) => risks.some((risk) => wanted.has(risk)));
    await tellFindings(
      context,
      risky.map((right) => ({
        message: `${right.accountNamespace}/${right.account}: ${right.risks.filter((risk) => wanted.has(risk)).join(', ')}: ${describe(right)}`,
      })),
    );
    return risky.length > 0 ? exitCodes.findings : exitCodes.done;
  });
}

interface Installed {
  name: string;
  objects: PlainObject[];
  /** Clouds for which the operator asks for credentials. */
  clouds: string[];
}

/** Undefined, after saying why, where the bundle cannot be installed like this. */
async function convert(
  context: CommandContext,
  reference: string,
  options: PermissionsOptions,
  sources: SourceOpener,
): Promise<Installed | undefined> {
  const { installNamespace = '', watchNamespace } = options;
  const { files, isInPlace } = await sources.readBundle(reference);
  const { objects, findings, bundle } = convertRegistryV1(files, {
    installNamespace,
    watchNamespaces: watchNamespace,
  });
  if (findings.length > 0 || bundle === undefined) {
    await tellFindings(context, findings.map(inSource(reference, isInPlace)));
    return undefined;
  }
  const annotations = bundle.csv.metadata.annotations ?? {};
  const clouds = sortedByBytes(Object.keys(annotations)).flatMap((key) => {
    const cloud = /^features\.operators\.openshift\.io\/token-auth-(\w+)$/.exec(key)?.[1];
    return cloud !== undefined && annotations[key] === 'true' ? [cloud] : [];
  });
  return { name: bundle.packageName, objects, clouds };
}

interface Report {
  /** Everything, or with an older bundle, what is new. */
  added: Right[];
  /** What only the older bundle has; undefined without one. */
  removed: Right[] | undefined;
  webhooks: JsonObject[];
  clouds: string[];
}

function reportOf(current: Installed, older: Installed | undefined): Report {
  const rights = rightsOf(current.objects);
  const before = older && rightsOf(older.objects);
  return {
    added: before === undefined ? rights : rightsBeyond(rights, before),
    removed: before && rightsBeyond(before, rights),
    webhooks: current.objects.filter(({ kind }) => kind.endsWith('WebhookConfiguration')).flatMap(webhooksOf),
    clouds: current.clouds,
  };
}

/** What the webhooks of a configuration intercept. */
function webhooksOf(object: PlainObject): JsonObject[] {
  const { webhooks } = object.load();
  return (webhooks as JsonObject[]).map((webhook) => ({
    kind: object.kind,
    name: object.name,
    failurePolicy: (webhook['failurePolicy'] ?? 'Fail') as string,
    rules: (webhook['rules'] ?? []) as JsonValue,
  }));
}

function textOf(
  report: Report,
  { name, objects }: Installed,
  pins: readonly Pin[],
  output: (typeof outputs)[number],
): string | AsyncIterable<string> {
  if (output === 'rbac') {
    return writeObjects(
      objects.filter(({ kind }) => /^(?:ServiceAccount|(?:Cluster)?Role(?:Binding)?)$/.test(kind)),
      'yaml',
    );
  }
  if (output === 'installer') return writeObjects(installerRoles(`${name}-installer`, objects), 'yaml');
  if (output === 'table') return tableOf(report);
  const value = {
    permissions: report.added as unknown as JsonValue,
    ...(report.removed !== undefined && { removed: report.removed as unknown as JsonValue }),
    webhooks: report.webhooks,
    cloudCredentials: report.clouds,
    sources: pinValues(pins),
  };
  return output === 'json' ? `${encodeGoJson(value, { indent: 2 })}\n` : encodeYaml(value);
}

/** Titles of the columns of `rightCells`. */
export const rightHeader = ['ACCOUNT', 'NAMESPACE', 'GROUP', 'RESOURCE', 'VERBS', 'RISKS'];

/** A right as a row of a table. */
export function rightCells(right: Right): string[] {
  return [
    `${right.accountNamespace}/${right.account}`,
    right.namespace === '' ? '(all)' : right.namespace,
    right.group === '' ? '(core)' : right.group,
    right.resource + (right.names.length > 0 ? ` [${right.names.join(' ')}]` : ''),
    right.verbs.length === 0 ? '(not in the bundle)' : right.verbs.join(','),
    right.risks.join(','),
  ];
}

function tableOf({ added, removed, webhooks, clouds }: Report): string {
  const rows =
    removed === undefined
      ? added.map(rightCells)
      : [
          ...added.map((right) => ['+', ...rightCells(right)]),
          ...removed.map((right) => ['-', ...rightCells(right)]),
        ];
  let text = formatTable(removed === undefined ? rightHeader : ['', ...rightHeader], rows);
  for (const { kind, name, failurePolicy, rules } of webhooks) {
    const what = (rules as JsonObject[]).map(({ apiGroups, resources }) =>
      [apiGroups, resources]
        .map((list) => (Array.isArray(list) ? list.map((item) => item || 'core').join(',') : ''))
        .join('/'),
    );
    text += `\n${printable(`${String(kind)} ${String(name)} (${String(failurePolicy)}): ${what.join(' ')}`)}`;
  }
  if (webhooks.length > 0) text += '\n';
  if (clouds.length > 0) text += `\nasks for credentials of: ${clouds.join(', ')}\n`;
  return text.replace(/ +$/gm, '');
}

function describe({ namespace, group, resource, verbs }: Right): string {
  const where = namespace === '' ? 'in the whole cluster' : `in namespace ${namespace}`;
  const what = group === '' ? resource : `${resource}.${group}`;
  return `${verbs.length === 0 ? 'whatever' : verbs.join(',')} ${what} ${where}`;
}

function checkOptions(options: PermissionsOptions, output: string | undefined): void {
  if (output === undefined) {
    throw new UsageError(
      `invalid --output value ${quoteGo(options.output ?? '')}, expected (${outputs.join('|')})`,
    );
  }
  if (options.installNamespace === undefined || options.installNamespace === '') {
    throw new UsageError('--install-namespace is missing', {
      hint: 'say where the operator is to be installed, e.g. --install-namespace widget-system',
    });
  }
  if (options.diff !== undefined && (output === 'rbac' || output === 'installer')) {
    throw new UsageError(`--diff: not with -o ${output}`, { hint: 'choose table, json or yaml' });
  }
  const unknown = options.failOn?.find((risk) => !riskNames.includes(risk));
  if (unknown !== undefined) {
    throw new UsageError(`--fail-on ${unknown}: not known`, { hint: `known are ${riskNames.join(', ')}` });
  }
}
