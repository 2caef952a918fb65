import { argument, defineCommand } from '../command/declaration.js';
import { choice, flag, grouped, repeated, required, text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { channelFlags, getData, referenceForms, splitInstalled } from './resolve-input.js';
import { createFault } from '../../core/diagnostic.js';
import { sortedByBytes } from '../../core/order.js';
import type { Resolution } from '../../graph/resolve.js';
import { resolveBundle } from '../../api/bundle/resolve-bundle.js';
import { parseNamedCatalog } from '../../api/named-catalogs.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { formatTable } from '../table.js';
import { endWithFindings } from './findings.js';

const resolveFlags = {
  catalog: required(
    repeated('catalog', 'catalog: REF or NAME=REF[,priority=N][,labels=KEY=VALUE,…]', { group: 'Input' }),
  ),
  version: text('range', 'version range; see "opmate help versions"', { group: 'Selection' }),
  ...channelFlags,
  installed: text('bundle', 'installed bundle: NAME, or NAME@VERSION if no catalog has it', {
    group: 'Input',
  }),
  ...grouped('Selection', {
    policy: choice('policy', ['catalog-provided', 'self-certified'], 'upgrade constraint policy', {
      default: 'catalog-provided',
    }),
    selector: text('labels', 'use only catalogs with these labels: KEY=VALUE,…'),
  }),
  failOnDeprecated: flag('exit with 3 if the bundle, its package or its channel is deprecated', {
    group: 'Behavior',
  }),
  output: outputFormat(['text', 'json', 'yaml'], { default: 'text' }),
};

/** `opmate bundle resolve`; exit code 3 if no bundle is chosen, and with `--fail-on-deprecated`. */
export const command = defineCommand({
  summary: 'print the bundle of a package that OLM v1 would install',
  description: referenceForms,
  arguments: [argument('<package>', 'name of the package')],
  flags: resolveFlags,
  commonFlags: ['version', 'channel', 'policy', 'selector', 'catalog', 'installed', 'output'],
  examples: {
    'Print the bundle that would be installed': 'opmate bundle resolve demo --catalog ./catalog',
    'Print the upgrade of an installed bundle':
      'opmate bundle resolve demo --catalog ./catalog --installed demo.v1.0.0 --version ">=1.1"',
  },
  async runInSession({ context, args: [packageName], options, session }) {
    const { output } = options;
    const { version: versionRange = '', channel: channels = [], policy, selector } = options;
    const request = { packageName, versionRange, channels, policy };
    const { resolution, installed: known } = await resolveBundle(
      {
        ...request,
        ...(options.installed !== undefined && { installed: splitInstalled(options.installed) }),
        selector,
      },
      options.catalog.map(parseNamedCatalog),
      session,
    );
    for (const { kind, name, message } of resolution.deprecations) {
      const what = kind === 'installed' ? 'installed bundle' : kind;
      session.logger.log('warn', `${what} ${name} is deprecated: ${message}`);
    }
    session.logger.close();
    const query = { ...request, installed: known && { name: known.name, version: known.version.text } };
    const text =
      output === 'text' ? formatText(resolution) : getData({ request: query, ...resolution }, output);
    await writeAll(context.stdout, text, session.signal);
    if (resolution.outcome !== 'resolved') {
      const finding = createFault('resolution', resolution.reason, { hint: findHint(resolution) });
      return endWithFindings({ context, session }, [finding]);
    }
    const isOutdated = resolution.deprecations.some(({ kind }) => kind !== 'installed');
    return options.failOnDeprecated && isOutdated ? exitCodes.findings : exitCodes.done;
  },
});

function findHint({ outcome, successors }: Resolution): string | undefined {
  if (outcome === 'ambiguous') return 'set different priorities, or select a catalog with --selector';
  if (outcome === 'unsupported')
    return 'select another version or channel: OLM v1 does not fall back to the next one';
  if (successors.length === 0) return undefined;
  const offers = successors.map(({ stream, name, channels, catalog }) => {
    return `${stream}-stream: ${name} (channel ${channels.join(', ')} of ${catalog})`;
  });
  return `select an available upgrade: ${offers.join('; ')}`;
}

function formatText({ chosen, reason, catalogs }: Resolution): string {
  let text = '';
  if (chosen !== undefined) {
    const rows = [
      ['version:', chosen.version],
      ...(chosen.release === undefined ? [] : [['release:', chosen.release]]),
      ['image:', chosen.image],
      ['catalog:', chosen.catalog],
      ['channels:', sortedByBytes(chosen.channels).join(', ')],
      ['why:', reason],
    ];
    text += `${formatTable(['bundle:', chosen.name], rows)}\n`;
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
  const hasReleases = catalogs.some(({ candidates }) =>
    candidates.some(({ release }) => release !== undefined),
  );
  return `${text}\n${formatTable(
    ['CATALOG', 'BUNDLE', 'VERSION', ...(hasReleases ? ['RELEASE'] : []), 'DEPRECATED', 'RESULT'],
    catalogs.flatMap(({ name: catalog, candidates }) =>
      candidates.map(({ name, version, release, deprecation, reasons }) => [
        catalog,
        name,
        version === '' ? '-' : version,
        ...(hasReleases ? [release ?? '-'] : []),
        deprecation === undefined ? '-' : 'yes',
        reasons.length === 0 ? 'chosen' : reasons.join('; '),
      ]),
    ),
  )}`;
}
