import { describeId } from '../../cluster/objects.js';
import { count } from '../../core/printable.js';
import path from 'node:path';
import { OpmateError, invalidValue } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { type Reference, parseTargetReference } from '../../core/reference.js';
import { statIfPresent } from '../../files/file-status.js';
import { replaceFiles } from '../../files/replace-file.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { locateTarget, parseImageLocation, requireReference } from '../../mirror/naming/image-location.js';
import type { BuiltImage } from '../../oci/image/image-builder.js';
import { formatPlatform } from '../../oci/image/platform.js';
import type { Session } from '../../source/session.js';
import type { LoadReport } from '../../sqlite/legacy/manifest-loader.js';
import { buildIndexImages, settleDatabase } from '../../sqlite/read/index-image.js';
import {
  type ImageOutput,
  type StoredImage,
  checkImageOutput,
  openBase,
  putImages,
} from '../images/image-output.js';
import { type AddToIndexOptions, addToIndex } from './add-to-index.js';
import {
  type ManifestSource,
  getAppRegistryNamespace,
  getConfigMapId,
  loadManifests,
} from './load-manifests.js';

/** Source of the operators of a new index. */
export type OperatorSource =
  | ManifestSource
  /** Bundle images, directories, layouts or archives. */
  | { kind: 'bundles'; references: readonly string[]; options?: AddToIndexOptions | undefined };

/** Options of `buildIndex`. */
export interface BuildIndexOptions {
  /**
   * Images to push or save, or the directory to write `bundles.db` to. `to` is a reference, `oci:DIR[:TAG]`,
   * `oci-archive:FILE` or `file://PATH[:TAG]` below the working directory; `save` is the file of an archive of docker.
   */
  output:
    | readonly ImageOutput[]
    | { to?: string | undefined; save?: string | undefined }
    | { databaseDirectory: string };
  /** Base image, in a registry or layout, or `scratch`; default `quay.io/operator-framework/opm:v1.73.0`. */
  baseImage?: string | undefined;
  /** Omit and report invalid operators; default false. */
  permissive?: boolean | undefined;
  /** Called when the database is complete, before an image is built. */
  onLoaded?: ((report: LoadReport) => void) | undefined;
}

/** Index that was built. */
export interface BuiltIndex extends LoadReport {
  images: StoredImage[];
  /** The database file, if that was to be written. */
  database: string | undefined;
}

const databaseName = 'bundles.db';

/**
 * Builds an index of all operators of a source, and writes it as images or as its database. The base image is opened
 * before anything is downloaded. Equal operators make equal images. An archive of docker holds the image of one platform:
 * the host's, else amd64.
 *
 * Throws OpmateError, NOT_FOUND for a source without operators; ManifestsError with all problems unless `permissive`. Then
 * nothing is written.
 */
export async function buildIndex(
  source: OperatorSource,
  session: Session,
  options: BuildIndexOptions,
): Promise<BuiltIndex> {
  const { baseImage, onLoaded } = options;
  const label = getLabel(source);
  const output = await getOutput(options.output, session);
  await checkOutput(output);
  const base =
    'databaseDirectory' in output ? undefined : await openBase(session, baseImage, 'request.baseImage');
  try {
    return await withTemporaryDirectory(session, async (directory) => {
      const { signal, platform } = session;
      const file = path.join(directory, databaseName);
      const report = await load(file, source, session, options);
      onLoaded?.(report);
      if (report.packages.length === 0) {
        throw new OpmateError('NOT_FOUND', `${label}: no operators that could be part of a catalog`);
      }
      await settleDatabase(file, label);
      if ('databaseDirectory' in output) {
        const database = path.join(output.databaseDirectory, databaseName);
        await replaceFiles([{ target: database, copyOf: file, mode: 0o644 }], { signal });
        return { ...report, images: [], database };
      }
      const images: StoredImage[] = [];
      const bases = base?.images ?? [];
      const built = await buildIndexImages(file, { bases, platform, directory, signal });
      for (const item of output)
        images.push(await putImages(session, item, fit(built, item, session), directory));
      return { ...report, images, database: undefined };
    });
  } finally {
    await base?.close();
  }
}

type IndexOutput = readonly ImageOutput[] | { databaseDirectory: string };

/** Reads the destinations of an index. Throws UsageError, and OpmateError IO for a directory. */
async function getOutput(
  output: BuildIndexOptions['output'],
  { workingDirectory }: Session,
): Promise<IndexOutput> {
  if ('length' in output || 'databaseDirectory' in output) return output;
  const { to, save } = output;
  const target = to === undefined ? undefined : parseTarget(to, workingDirectory);
  const outputs: ImageOutput[] = target === undefined ? [] : [{ to: target }];
  if (save === undefined) return outputs;
  if ((await statIfPresent(save))?.isDirectory() === true) {
    throw new OpmateError('IO', `${save}: is a directory`, {
      file: save,
      hint: 'specify a file for the archive, or write only the database with request.databaseDirectory',
    });
  }
  const isRegistry = target?.transport === 'docker';
  const name = isRegistry ? `${target.registry}/${target.repository}:${target.tag}` : undefined;
  outputs.push({ to: { transport: 'docker-archive', text: `docker-archive:${save}`, path: save }, name });
  return outputs;
}

function parseTarget(text: string, workingDirectory: string): Reference {
  const target = text.startsWith('file://')
    ? requireReference(locateTarget(parseImageLocation(text), workingDirectory))
    : parseTargetReference(text);
  if (target.digest !== undefined)
    throw invalidValue('request.to', text, 'names a digest', { hint: 'specify a tag to push to' });
  if (target.transport === 'docker-archive')
    throw invalidValue('request.to', text, 'an archive cannot be pushed to', {
      hint: 'use request.save FILE',
    });
  if (target.tag !== undefined) return target;
  if (target.transport === 'docker')
    throw invalidValue('request.to', text, 'missing tag', { hint: `add a tag, e.g. ${text}:latest` });
  return { ...target, tag: 'latest' };
}

/** Checks before anything is downloaded that the output has a place. */
async function checkOutput(output: IndexOutput): Promise<void> {
  if (!('databaseDirectory' in output)) {
    for (const item of output) await checkImageOutput(item);
    return;
  }
  const { databaseDirectory } = output;
  if ((await statIfPresent(databaseDirectory))?.isDirectory() !== false) return;
  throw new OpmateError('IO', `${databaseDirectory}: is not a directory`, {
    file: databaseDirectory,
    hint: `specify the directory to write ${databaseName} to`,
  });
}

async function load(
  file: string,
  source: OperatorSource,
  session: Session,
  { permissive }: BuildIndexOptions,
): Promise<LoadReport> {
  if (source.kind !== 'bundles')
    return loadManifests(file, source, session, { permissive, name: databaseName });
  const options = { ...source.options, permissive, name: databaseName };
  const { added, failures } = await addToIndex(file, source.references, session, options);
  return { bundles: [...added.values()].flat(), packages: sortedByBytes(added.keys()), problems: failures };
}

/** Returns how messages name a source. */
function getLabel(source: OperatorSource): string {
  switch (source.kind) {
    case 'bundles':
      return count(source.references.length, 'bundle');
    case 'namespace':
      return getAppRegistryNamespace(source).label;
    case 'configmap':
      return source.file;
    case 'cluster':
      return describeId(getConfigMapId(source));
    default:
      return source.directory;
  }
}

/** Returns the images for an output; a docker archive has one: of the host's architecture, amd64, or the first. */
function fit(
  images: readonly BuiltImage[],
  { to }: ImageOutput,
  { hostPlatform, logger }: Session,
): readonly BuiltImage[] {
  const [first] = images;
  if (to.transport !== 'docker-archive' || first === undefined || images.length === 1) return images;
  const find = (architecture: string): BuiltImage | undefined =>
    images.find(({ platform }) => platform.architecture === architecture);
  const chosen = find(hostPlatform.architecture) ?? find('amd64') ?? first;
  const name = formatPlatform(chosen.platform);
  logger.log('info', `the archive holds the image of ${name}; session.platform takes another`);
  return [chosen];
}
