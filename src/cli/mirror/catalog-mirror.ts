import { logError } from '../../core/log.js';
import { argument, defineCommand } from '../command/declaration.js';
import { type Flag, type FlagValues, flag, grouped, parsed, text } from '../command/flags.js';
import { integer, pollInterval } from '../command/values.js';
import { type GlobalOptions, registryFlags } from '../command/global-flags.js';
import { formatFlags } from '../ending.js';
import { copyFlags, directoryUrl, maxPerRegistryFlag } from './flags.js';
import { invalidValue, UsageError } from '../../core/errors.js';
import { type MirrorCatalogOptions, mirrorCatalog } from '../../api/mirror/mirror-catalog.js';
import type { CatalogMirrorPlan } from '../../mirror/mapping/catalog-mirror.js';
import type { MirrorScope } from '../../mirror/mapping/mirror-sets.js';
import { exitCodes } from '../exit-codes.js';
import { finishTransfer, parseGlobalOptions, warnOfUnusedFlags } from './options.js';
import { count, shellWord } from '../printable.js';
import type { CommandSession } from '../session.js';

const flags = {
  ...grouped('Input', {
    sourceName: text('reference', 'name of the catalog; no registry is contacted for it'),
    path: text('in:out', 'catalog directory in the image, and directory to unpack it to'),
    indexFilterByOs: text('pattern', 'platform of the catalog image to read', { default: 'linux/amd64' }),
  }),
  ...grouped('Output', {
    toManifests: text(
      'directory',
      'output directory of mapping and manifests (default: manifests-NAME-TIME)',
    ),
    maxComponents: parsed(
      'count',
      'maximum path components at the destination; 0 for no limit',
      componentCount,
      { default: 2 },
    ),
    mergeRepositories: flag('do not warn of source repositories that share a target repository'),
    idmsScope: text('scope', 'scope of entries: repository or registry', { default: 'repository' }),
    icspScope: text('scope', 'scope of ImageContentSourcePolicy entries', { default: 'repository' }),
    itms: flag('also write imageTagMirrorSet.yaml, for images with a tag only'),
    maxIdmsSize: documentSize('maximum size of a document, in bytes'),
    maxIcspSize: documentSize('maximum size of an ImageContentSourcePolicy, in bytes'),
    pollInterval: parsed(
      'duration',
      'interval in which the cluster polls the catalog: updateStrategy',
      pollInterval,
    ),
    workspace: directoryUrl('record copies in working-dir/audit.jsonl below it'),
    manifestsOnly: flag('write mapping and manifests without copying images'),
  }),
  filterByOs: text('pattern', 'the old name of --index-filter-by-os', { hidden: true }),
  continueOnError: flag('continue on errors (default: true)', { default: true, group: 'Behavior' }),
  maxPerRegistry: maxPerRegistryFlag('4'),
  ...copyFlags,
  dryRun: flag('check that every image exists without copying', { group: 'Output' }),
};

type CatalogMirrorOptions = FlagValues<typeof flags> & GlobalOptions;

/** `opmate catalog mirror`; prints digest and target of each copied image. Exit code 4 if some failed. */
export const command = defineCommand({
  summary: 'mirror a catalog and its images, and write the manifests for a cluster',
  tool: 'oc',
  arguments: [
    argument('<source>', 'catalog image, or with --source-name a directory, layout or database file'),
    argument('<destination>', 'registry[/path], or file://path'),
  ],
  flags,
  commonFlags: [
    'path',
    'toManifests',
    'manifestsOnly',
    'dryRun',
    'maxComponents',
    'registryConfig',
    'insecure',
    'indexFilterByOs',
    'dir',
    'output',
  ],
  examples: {
    'Mirror a catalog and its images':
      'opmate catalog mirror registry.example.com/demo/catalog:v1 registry.example.com/mirror',
    'Write only mapping and manifests':
      'opmate catalog mirror registry.example.com/demo/catalog:v1 registry.example.com/mirror --manifests-only',
  },
  readOptions: ({ options }) => parseGlobalOptions(options),
  async runInSession({ context, args: [source, destination], options, session }) {
    const { dryRun } = options;
    const mirrorOptions = parseMirrorOptions(options);
    const { logger } = session;
    warnOfUnusedFlags(options, logger);
    const { plan, report, directory } = await mirrorCatalog(source, destination, session, {
      ...mirrorOptions,
      onPlanned: (planned) => reportPlan(planned, options, session),
    });
    logger.log('info', `wrote mapping and manifests to ${directory}`);
    if (report === undefined) return plan.faults.length > 0 ? exitCodes.partly : exitCodes.done;
    const target = plan.catalog.target;
    const repeated = { dir: copyFlags.dir, insecure: copyFlags.insecure, ...registryFlags };
    const next =
      target.transport === 'oci'
        ? `opmate catalog mirror ${shellWord(plan.catalog.destination)}${formatFlags(repeated, options)} REGISTRY/NAMESPACE`
        : `kubectl apply -f ${shellWord(directory)}`;
    return finishTransfer(context, logger, report, {
      // As oc prints them.
      output: options.output ?? 'text',
      next: dryRun ? undefined : next,
      dryRun,
      faults: plan.faults.length,
    });
  },
});

function parseMirrorOptions(options: CatalogMirrorOptions): MirrorCatalogOptions {
  const { sourceName, manifestsOnly, mergeRepositories, continueOnError, dryRun, referrers, itms } = options;
  return {
    sourceName,
    manifestsOnly,
    mergeRepositories,
    continueOnError,
    dryRun,
    referrers,
    itms,
    icspScope: parseScope(options.icspScope, 'icsp-scope'),
    idmsScope: parseScope(options.idmsScope, 'idms-scope'),
    maxIcspSize: options.maxIcspSize,
    maxIdmsSize: options.maxIdmsSize,
    pollInterval: options.pollInterval,
    maxComponents: options.maxComponents,
    maxPerRegistry: options.maxPerRegistry,
    platformPattern: parsePlatformPattern(options),
    path: pathOption(options),
    manifests: options.toManifests,
    workspace: options.workspace,
    directory: options.dir,
    fromDirectory: options.fromDir,
  };
}

function reportPlan(
  { faults, warnings, images, catalog, unreachable }: CatalogMirrorPlan,
  options: CatalogMirrorOptions,
  { logger }: CommandSession,
): void {
  for (const { error } of faults) logError(logger, error);
  for (const warning of warnings) logger.log('warn', warning);
  logger.log('info', `${catalog.source}: ${count(images.length, 'image')} to mirror, itself included`);
  const uncovered = images.filter(
    ({ kind, reference }) => kind !== 'catalog' && reference.digest === undefined,
  ).length;
  if (uncovered > 0 && !options.itms && catalog.target.transport === 'docker')
    logger.log(
      'info',
      `${count(uncovered, 'image')} with a tag only: not covered by ImageDigestMirrorSet; --itms writes an ImageTagMirrorSet`,
    );
  if (unreachable === undefined) return;
  const names = `${unreachable.source} is ${unreachable.destination} there`;
  for (const kind of ['icsp', 'idms'] as const) {
    if (options[`${kind}Scope`] !== 'registry') continue;
    logger.log('warn', `--${kind}-scope registry: a cluster finds only what keeps its path, but ${names}`);
  }
}

function componentCount(text: string): number {
  const value = integer(0)(text);
  if (value !== 1) return value;
  throw new UsageError('a path needs at least 2 components', { hint: 'use 0 for no limit' });
}

function documentSize(summary: string): Flag<number | undefined> {
  return parsed('bytes', summary, integer(1), { defaultText: '250000' });
}

function parseScope(text: string, flag: string): MirrorScope {
  if (text === 'repository' || text === 'registry') return text;
  throw invalidValue(`--${flag}`, text, 'expected repository or registry');
}

function parsePlatformPattern({ filterByOs, indexFilterByOs }: CatalogMirrorOptions): RegExp {
  const pattern = filterByOs ?? indexFilterByOs;
  try {
    return new RegExp(pattern);
  } catch {
    throw invalidValue('--index-filter-by-os', pattern, 'not a regular expression');
  }
}

function pathOption({
  path: text,
}: CatalogMirrorOptions): { inside: string; outside: string | undefined } | undefined {
  if (text === undefined) return undefined;
  const colon = text.indexOf(':');
  if (colon < 0) throw invalidValue('--path', text, 'expected IN:OUT');
  return { inside: text.slice(0, colon), outside: text.slice(colon + 1) || undefined };
}
