import { withOpen } from '../../core/concurrency.js';
import path from 'node:path';
import { OpmateError, UsageError } from '../../core/errors.js';
import {
  type Reference,
  looksLikePath,
  missingRegistry,
  missingTag,
  parseReference,
} from '../../core/reference.js';
import { statIfPresent } from '../../files/file-status.js';
import { getObjectName, requireMirrorSetBytes } from '../../mirror/cluster-manifests.js';
import {
  type CatalogMirrorPlan,
  type OutputOptions,
  encodeOutput,
  planCatalogMirror,
} from '../../mirror/mapping/catalog-mirror.js';
import {
  type OpenCatalogOptions,
  type OpenedSource,
  openCatalogImage,
  openLocalCatalog,
} from '../../mirror/mapping/catalog-source.js';
import {
  type ImageLocation,
  locateImage,
  parseImageLocation,
  requireReference,
} from '../../mirror/naming/image-location.js';
import { withoutNamespace } from '../../mirror/naming/image-name.js';
import { toNamedTransfer } from '../../mirror/plan/mirror-plan.js';
import { writeOutputFiles } from '../../mirror/output-files.js';
import { transferImages } from '../../mirror/transfer/transfer.js';
import type { TransferOptions, TransferReport } from '../../mirror/transfer/transfer-types.js';
import type { Session } from '../../source/session.js';
import { type FileRoots, resolveRoots } from './file-roots.js';
import { recordCopy } from './record-run.js';

/** Options of mirroring a catalog. */
export interface MirrorCatalogOptions extends OutputOptions, FileRoots {
  /** Name of the catalog, for a source in files: a directory, layout or database. No registry is contacted for it. */
  sourceName?: string | undefined;
  /** Output directory of mapping and manifests; default `manifests-NAME-TIME` in the working directory. */
  manifests?: string | undefined;
  /** Parent directory of a `working-dir` whose audit trail records what is copied; default none. */
  workspace?: string | undefined;
  /** Write mapping and manifests without copying images; default false. */
  manifestsOnly?: boolean | undefined;
  /** Platform of the catalog image to read, as `os/architecture`; default `linux/amd64`. */
  platformPattern?: RegExp | undefined;
  /** Catalog directory in the image, and directory to unpack it to; default as its labels state. */
  path?: OpenCatalogOptions['path'];
  /** Maximum number of path components at the destination, 0 for no limit; default 2. */
  maxComponents?: number | undefined;
  /** Omit notes about source repositories that share a target repository; default false. */
  mergeRepositories?: boolean | undefined;
  /** Continue after invalid references and images that cannot be copied; default true. */
  continueOnError?: boolean | undefined;
  /** Check that every image exists without copying; default false. */
  dryRun?: boolean | undefined;
  /** Copy referrers such as signatures too; default false. */
  referrers?: boolean | undefined;
  /** Maximum parallel requests per registry; default 4. */
  maxPerRegistry?: number | undefined;
  /** Called with the mapping before anything is copied or written. */
  onPlanned?: ((plan: CatalogMirrorPlan) => void) | undefined;
}

/** Result of mirroring a catalog. */
export interface MirroredCatalog {
  plan: CatalogMirrorPlan;
  /** Undefined if only manifests were written. */
  report: TransferReport | undefined;
  /** Absolute path of the directory with mapping and manifests. */
  directory: string;
}

/**
 * Mirrors a catalog and the images that it names to `registry[/path]` or `file://path`, and writes `mapping.txt` and
 * what a cluster needs to use the mirror: mirror sets and a CatalogSource. Images that are missing or cannot be copied
 * are listed in the report. Throws OpmateError, and UsageError for a destination with a tag or digest.
 */
export async function mirrorCatalog(
  source: string,
  destination: string,
  session: Session,
  options: MirrorCatalogOptions = {},
): Promise<MirroredCatalog> {
  const { sourceName, manifestsOnly = false, dryRun = false, continueOnError = true } = options;
  const { logger, signal, workingDirectory } = session;
  requireMirrorSetBytes('options.maxIcspSize', options.maxIcspSize);
  requireMirrorSetBytes('options.maxIdmsSize', options.maxIdmsSize);
  const target = parseDestination(destination);
  const name = sourceName === undefined ? await parseSource(source) : parseImageLocation(sourceName);
  const roots = resolveRoots(options, session);
  const seconds = Math.floor(session.now().getTime() / 1000);
  const directory = path.resolve(
    workingDirectory,
    options.manifests ?? `manifests-${getObjectName(withoutNamespace(name.name.repository))}-${seconds}`,
  );
  const local = sourceName === undefined ? undefined : await findLocal(source);
  if (typeof local === 'string' && !manifestsOnly && !dryRun) {
    throw new UsageError(`${source}: not an image, so it cannot be copied`, {
      hint: 'add options.manifestsOnly, or build an image of the catalog first',
    });
  }
  const { platformPattern = /linux\/amd64/ } = options;
  const opened = await openCatalog(local ?? requireReference(locateImage(name, roots.from)), {
    session,
    platformPattern,
    path: options.path,
  });
  const { maxComponents = 2, mergeRepositories } = options;
  const plan = await withOpen(opened, ({ catalog }) =>
    planCatalogMirror(catalog, {
      logger,
      signal,
      source: name,
      destination: target,
      roots,
      maxComponents,
      mergeRepositories,
    }),
  );
  const [fault] = plan.faults;
  if (fault !== undefined && !continueOnError) throw fault.error;
  options.onPlanned?.(plan);
  const files = encodeOutput(plan, options);
  const start = { task: 'catalog', destination, configuration: source } as const;
  const report = manifestsOnly
    ? undefined
    : await recordCopy(dryRun ? undefined : options.workspace, start, session, (onCopied) =>
        copyPlan(plan, opened.image, session, { ...options, onCopied }),
      );
  await writeOutputFiles(directory, files);
  return { plan, report, directory };
}

/** Copies the images of a plan; the catalog from `image`, if it is one. */
function copyPlan(
  { images }: CatalogMirrorPlan,
  image: Reference | undefined,
  session: Session,
  options: MirrorCatalogOptions & Pick<TransferOptions, 'onCopied'>,
): Promise<TransferReport> {
  const { maxPerRegistry = 4, continueOnError = true, dryRun = false, referrers, onCopied } = options;
  // A catalog in a directory can only be looked for where its name says.
  const transfers = images.map((planned) =>
    toNamedTransfer(planned.kind === 'catalog' ? { ...planned, from: image ?? planned.from } : planned),
  );
  const copying = { maxPerRegistry, continueOnError, skipMissing: true, dryRun, referrers, onCopied };
  return transferImages(transfers, { session, ...copying });
}

async function openCatalog(from: string | Reference, options: OpenCatalogOptions): Promise<OpenedSource> {
  return typeof from === 'string' ? openLocalCatalog(from, options.session) : openCatalogImage(from, options);
}

/** Reads an image reference. Throws OpmateError for a path, and for a word that may be one: neither registry nor tag. */
async function parseSource(source: string): Promise<ImageLocation> {
  const isPath = looksLikePath(source);
  if (!isPath) {
    const place = parseImageLocation(source);
    const { registry, tag, digest } = place.name;
    const isNamed = registry !== '' || tag !== undefined || digest !== undefined;
    if (isNamed || place.scheme === 'file') return place;
  }
  if ((await statIfPresent(source)) !== undefined) {
    throw new UsageError('not an image', {
      subject: source,
      hint: 'add options.sourceName REGISTRY/NAMESPACE/NAME:TAG and options.manifestsOnly for a catalog in files',
    });
  }
  if (isPath) throw new OpmateError('NOT_FOUND', 'no such file or directory', { subject: source });
  throw missingTag(source);
}

/** Returns the local image, or the path of the local catalog, that has a separate source name. */
async function findLocal(source: string): Promise<string | Reference> {
  if (/^(oci|oci-archive|docker-archive):/.test(source)) return parseReference(source);
  const stats = await statIfPresent(source);
  if (stats === undefined) {
    throw new OpmateError('NOT_FOUND', `${source}: no such file or directory`, {
      hint: 'use a directory, a layout or a database file with options.sourceName',
    });
  }
  const isLayout = stats.isDirectory() && (await statIfPresent(path.join(source, 'oci-layout')));
  return isLayout ? { transport: 'oci', text: `oci:${source}`, path: source } : source;
}

function parseDestination(text: string): ImageLocation {
  const place = parseImageLocation(text, { isPrefix: true });
  const { tag, digest, registry } = place.name;
  if (tag === undefined && digest === undefined) {
    if (place.scheme === 'registry' && registry === '') {
      throw missingRegistry(text, `docker.io/${text.replace(/^docker:\/\//, '')}`);
    }
    return place;
  }
  const isHost = registry === '' && /^\d+$/.test(tag ?? '');
  throw new UsageError(`${text}: a destination has neither tag nor digest`, {
    hint: isHost ? `use ${text}/NAMESPACE for a registry of that name and port` : 'use REGISTRY/NAMESPACE',
  });
}
