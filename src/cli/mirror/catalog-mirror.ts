import { argument, defineCommand } from '../command/declaration.js';
import { type FlagValues, flag, text } from '../command/flags.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { copyFlags, maxPerRegistryFlag } from './flags.js';
import path from 'node:path';
import { statIfPresent } from '../../files/file-status.js';
import { UsageError } from '../../core/errors.js';
import { type Reference, missingRegistry, parseReference } from '../../core/reference.js';
import {
  type CatalogMirrorPlan,
  type OutputOptions,
  encodeOutput,
  planCatalogMirror,
} from '../../mirror/mapping/catalog-mirror.js';
import {
  type OpenedCatalog,
  type OpenCatalogOptions,
  openCatalogImage,
  openLocalCatalog,
} from '../../mirror/mapping/catalog-source.js';
import { maxMirrorSetBytes, getObjectName } from '../../mirror/cluster-manifests.js';
import { getReference, getTargetReference } from '../../mirror/mapping/image-location.js';
import {
  type TypedImageReference,
  formatTypedReference,
  parseTypedReference,
} from '../../mirror/mapping/image-names.js';
import { formatTarget } from '../../mirror/mapping/mapping.js';
import { type MirrorScope, findUnreachable } from '../../mirror/mapping/mirror-sets.js';
import { writeOutputFiles } from '../../mirror/output-files.js';
import { transferImages } from '../../mirror/transfer/transfer.js';
import type { TransferReport } from '../../mirror/transfer/transfer-types.js';
import { OpmateError } from '../../core/errors.js';
import { exitCodes } from '../exit-codes.js';
import { finishTransfer, parseGlobalOptions, parseInteger, getRoots, tellUnneeded } from './options.js';
import { count, shellWord } from '../printable.js';
import { type CommandSession, useSession } from '../session.js';

const flags = {
  sourceName: text('reference', 'name of the catalog; no registry is contacted for it', { group: 'Input' }),
  toManifests: text('directory', 'output directory of mapping and manifests (default: manifests-NAME-TIME)', {
    group: 'Output',
  }),
  path: text('in:out', 'catalog directory in the image, and directory to unpack it to', { group: 'Input' }),
  indexFilterByOs: text('pattern', 'platform of the catalog image to read', {
    default: 'linux/amd64',
    group: 'Input',
  }),
  filterByOs: text('pattern', 'the old name of --index-filter-by-os', { hidden: true }),
  maxComponents: text('count', 'maximum path components at the destination; 0 for no limit', {
    default: '2',
    group: 'Output',
  }),
  mergeRepositories: flag('do not warn of source repositories that share a target repository', {
    group: 'Output',
  }),
  idmsScope: text('scope', 'scope of entries: repository or registry', {
    default: 'repository',
    group: 'Output',
  }),
  icspScope: text('scope', 'scope of ImageContentSourcePolicy entries', {
    default: 'repository',
    group: 'Output',
  }),
  itms: flag('also write imageTagMirrorSet.yaml, for images with a tag only', { group: 'Output' }),
  maxIdmsSize: text('bytes', 'maximum size of a document, in bytes', {
    default: String(maxMirrorSetBytes),
    group: 'Output',
  }),
  maxIcspSize: text('bytes', 'maximum size of an ImageContentSourcePolicy, in bytes', {
    default: String(maxMirrorSetBytes),
    group: 'Output',
  }),
  manifestsOnly: flag('write mapping and manifests without copying images', { group: 'Output' }),
  continueOnError: flag('continue on errors (default: true)', { default: true, group: 'Behavior' }),
  maxPerRegistry: maxPerRegistryFlag('4'),
  ...copyFlags,
};

type CatalogMirrorOptions = FlagValues<typeof flags> & GlobalOptions;

/**
 * `opmate catalog mirror`: copies a catalog and all images that it names, and writes the mapping and what a cluster
 * needs to find them. Prints digest and target of each image that was copied. Returns 4 where some were not.
 */
export const command = defineCommand({
  summary: 'mirror a catalog and its images, and write the manifests for a cluster',
  tool: 'oc',
  arguments: [
    argument('<source>', 'catalog image, or with --source-name a directory, layout or database file'),
    argument('<destination>', 'registry[/path], or file://path'),
  ],
  flags,
  examples: [
    [
      'Mirror a catalog and its images',
      'opmate catalog mirror registry.example.com/demo/catalog:v1 registry.example.com/mirror',
    ],
    [
      'Write only mapping and manifests',
      'opmate catalog mirror registry.example.com/demo/catalog:v1 registry.example.com/mirror --manifests-only',
    ],
  ],
  async run({ context, args: [source, destinationText], options: typedOptions }) {
    const options = parseGlobalOptions(typedOptions);
    const output = parseOutputOptions(options);
    const maxComponents = getMaxComponents(options);
    const maxPerRegistry = parseInteger(options.maxPerRegistry, 'max-per-registry', 1, 100);
    const destination = parseDestination(destinationText);
    const name = parseTypedReference(options.sourceName ?? source);
    const { continueOnError, manifestsOnly, dryRun } = options;
    const roots = getRoots(context, options);
    const seconds = Math.floor(context.now().getTime() / 1000);
    const directory = path.resolve(
      context.workingDirectory,
      options.toManifests ?? `manifests-${getObjectName(name.name.name)}-${seconds}`,
    );
    const local = options.sourceName === undefined ? undefined : await findLocal(source);
    if (typeof local === 'string' && !manifestsOnly && !dryRun) {
      throw new UsageError(`${source}: not an image, so it cannot be copied`, {
        hint: 'add --manifests-only, or make an image of the catalog first',
      });
    }
    const openOptions = { platformPattern: parsePlatformPattern(options), path: pathOption(options) };
    return useSession(context, options, async (session) => {
      const { logger } = session;
      tellUnneeded(options, logger);
      const from = local ?? getReference(name, roots.from);
      const opened = await openCatalog(from, { ...openOptions, session });
      let plan: CatalogMirrorPlan;
      try {
        plan = await planCatalogMirror(opened.catalog, {
          logger,
          signal: session.signal,
          source: name,
          destination,
          maxComponents,
          mergeRepositories: options.mergeRepositories,
        });
      } finally {
        await opened.close();
      }
      reportPlan(plan, options, session);
      warnOfScope(plan, output, session);
      const files = encodeOutput(plan, output);
      let exitCode: number = plan.faults.length > 0 ? exitCodes.partly : exitCodes.done;
      if (manifestsOnly) {
        await writeOutputFiles(directory, files);
        logger.log('info', `wrote mapping and manifests to ${directory}`);
        return exitCode;
      }
      const report = await transfer(plan, opened.image, {
        session,
        options,
        roots,
        maxPerRegistry,
        continueOnError,
      });
      await writeOutputFiles(directory, files);
      logger.log('info', `wrote mapping and manifests to ${directory}`);
      const next =
        destination.scheme === 'file'
          ? `opmate catalog mirror ${formatTarget(plan.catalog.target)} REGISTRY/NAMESPACE`
          : `kubectl apply -f ${shellWord(directory)}`;
      exitCode = await finishTransfer(context, logger, report, {
        // As oc prints them.
        output: options.output ?? 'text',
        next: dryRun ? undefined : next,
        dryRun,
        faults: plan.faults.length,
      });
      return exitCode;
    });
  },
});

function transfer(
  plan: CatalogMirrorPlan,
  catalogImage: Reference | undefined,
  settings: {
    session: CommandSession;
    options: CatalogMirrorOptions;
    roots: { from: string; to: string };
    maxPerRegistry: number;
    continueOnError: boolean;
  },
): Promise<TransferReport> {
  const { session, options, roots, maxPerRegistry, continueOnError } = settings;
  // A catalog in a directory can only be looked for where its name says.
  const transfers = plan.images.map(({ source, target, isCatalog }) => ({
    source: isCatalog && catalogImage !== undefined ? catalogImage : getReference(source, roots.from),
    target: getTargetReference(target, roots.to),
    sourceName: formatTypedReference(source),
    targetName: formatTarget(target),
    isLast: isCatalog,
  }));
  return transferImages(transfers, {
    session,
    maxPerRegistry,
    continueOnError,
    skipMissing: true,
    dryRun: options.dryRun,
    referrers: options.referrers,
    logger: session.logger,
    signal: session.signal,
  });
}

function reportPlan(
  plan: CatalogMirrorPlan,
  { continueOnError, itms }: CatalogMirrorOptions,
  { logger }: CommandSession,
): void {
  const [first] = plan.faults;
  if (first !== undefined && !continueOnError) throw first;
  for (const { message } of plan.faults) logger.log('error', message);
  for (const note of plan.notes) logger.log('warn', note);
  const { images, catalog } = plan;
  logger.log(
    'info',
    `${formatTypedReference(catalog.source)}: ${count(images.length, 'image')} to mirror, itself included`,
  );
  const uncovered = images.filter(
    ({ origin, isCatalog }) => !isCatalog && origin?.digest === undefined,
  ).length;
  if (uncovered > 0 && !itms && catalog.target.scheme === 'registry')
    logger.log(
      'info',
      `${count(uncovered, 'image')} with a tag only: not covered by ImageDigestMirrorSet; --itms writes an ImageTagMirrorSet`,
    );
}

function warnOfScope(plan: CatalogMirrorPlan, output: OutputOptions, { logger }: CommandSession): void {
  const lost = plan.catalog.target.scheme === 'registry' ? findUnreachable(plan.images) : undefined;
  for (const kind of ['icsp', 'idms'] as const) {
    if (lost === undefined || output[`${kind}Scope`] !== 'registry') continue;
    const names = `${formatTypedReference(lost.source)} is ${formatTarget(lost.target)} there`;
    logger.log('warn', `--${kind}-scope registry: a cluster finds only what keeps its path, but ${names}`);
  }
}

async function openCatalog(from: string | Reference, options: OpenCatalogOptions): Promise<OpenedCatalog> {
  return typeof from === 'string' ? openLocalCatalog(from, options.session) : openCatalogImage(from, options);
}

/** What a source is whose name is told apart: an image in files, or the path of a catalog. */
async function findLocal(source: string): Promise<string | Reference> {
  if (/^(oci|oci-archive|docker-archive):/.test(source)) return parseReference(source);
  const stats = await statIfPresent(source);
  if (stats === undefined) {
    throw new OpmateError('NOT_FOUND', `${source}: no such file or directory`, {
      hint: 'with --source-name the source is a directory, a layout or a database file',
    });
  }
  const isLayout = stats.isDirectory() && (await statIfPresent(path.join(source, 'oci-layout')));
  return isLayout ? { transport: 'oci', text: `oci:${source}`, path: source } : source;
}

function parseDestination(text: string): TypedImageReference {
  const place = parseTypedReference(text, { isPrefix: true });
  const { tag, digest, registry } = place.name;
  if (tag === undefined && digest === undefined) {
    if (place.scheme === 'registry' && registry === '') {
      throw missingRegistry(text, `docker.io/${text.replace(/^docker:\/\//, '')}`);
    }
    return place;
  }
  const isHost = registry === '' && /^\d+$/.test(tag ?? '');
  throw new UsageError(`${text}: a destination has neither tag nor digest`, {
    hint: isHost
      ? `for a registry of that name and port write ${text}/NAMESPACE`
      : 'write REGISTRY/NAMESPACE',
  });
}

function getMaxComponents({ maxComponents }: CatalogMirrorOptions): number {
  const value = parseInteger(maxComponents, 'max-components', 0);
  if (value !== 1) return value;
  throw new UsageError('--max-components 1: a path needs at least 2 components', {
    hint: 'write 0 for any number',
  });
}

function parseScope(text: string, flag: string): MirrorScope {
  if (text === 'repository' || text === 'registry') return text;
  throw new UsageError(`--${flag} ${text}: expected repository or registry`);
}

function parseOutputOptions(options: CatalogMirrorOptions): OutputOptions {
  const parseSize = (text: string, flag: string): number => parseInteger(text, flag, 1, maxMirrorSetBytes);
  return {
    itms: options.itms,
    icspScope: parseScope(options.icspScope, 'icsp-scope'),
    idmsScope: parseScope(options.idmsScope, 'idms-scope'),
    maxIcspSize: parseSize(options.maxIcspSize, 'max-icsp-size'),
    maxIdmsSize: parseSize(options.maxIdmsSize, 'max-idms-size'),
  };
}

function parsePlatformPattern({ filterByOs, indexFilterByOs }: CatalogMirrorOptions): RegExp {
  const pattern = filterByOs ?? indexFilterByOs;
  try {
    return new RegExp(pattern);
  } catch {
    throw new UsageError(`--index-filter-by-os ${pattern}: not a regular expression`);
  }
}

function pathOption({
  path: text,
}: CatalogMirrorOptions): { inside: string; outside: string | undefined } | undefined {
  if (text === undefined) return undefined;
  const colon = text.indexOf(':');
  if (colon < 0) throw new UsageError(`--path ${text}: expected IN:OUT`);
  return { inside: text.slice(0, colon), outside: text.slice(colon + 1) || undefined };
}
