import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { type ArchiveLimits, defaultArchiveLimits } from '../archive/limits.js';
import { type BundleFiles, bundleFilesOf, isBundleDirectory, readBundleDirectory } from '../bundle/read.js';
import { type Catalog, DirectoryCatalog } from '../catalog/catalog.js';
import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError, fileError, systemCode } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { type Logger, silentLogger } from '../core/log.js';
import { type Reference, parseReference } from '../core/reference.js';
import type { LinkOptions } from '../files/directory-root.js';
import type { BlobCache } from '../oci/registry/blob-cache.js';
import type { Connection } from '../oci/registry/connection.js';
import { type Image, extractImage, openImage, readImage } from '../oci/image/image.js';
import { openReference } from '../oci/image/open.js';
import type { Repository } from '../oci/registry/repository.js';
import type { Platform } from '../oci/image/types.js';
import { imageLabels, pathOfLabel } from '../model/image-labels.js';
import { openInTemporaryDirectory } from '../files/temporary-directory.js';
import { isDatabaseFile } from '../sqlite/schema/database.js';

/** What opening a source needs from the outside. */
export interface SourceOptions extends CancelOptions, LinkOptions {
  /** How registries are reached; called when the first image is pulled from one. */
  connect: () => Connection | Promise<Connection>;
  /** Where catalog images are unpacked while they are read. */
  temporaryDirectory: string;
  now: () => Date;
  /** Platform to take from an image index; the host's where it is left out. */
  platform?: Platform | undefined;
  hostPlatform: Platform;
  cache?: BlobCache | undefined;
  limits?: ArchiveLimits | undefined;
  logger?: Logger | undefined;
}

/** A source after it was recognised and opened. `close` removes what was unpacked for it. */
export type Source = CatalogSource | BundleSource;

export interface CatalogSource {
  kind: 'catalog';
  catalog: Catalog;
  close(): Promise<void>;
}

export interface BundleSource {
  kind: 'bundle';
  /** Pull specification, as the user gave it; empty for a bundle that was not read from a registry. */
  image: string;
  files: BundleFiles;
  close(): Promise<void>;
}

/** Which sources a command takes; others are refused before anything of them is read. */
export interface AllowedSources {
  bundles: boolean;
  catalogs: boolean;
}

const nothingToClose = (): Promise<void> => Promise.resolve();

/**
 * Finds out what a reference is, and opens it: a bundle directory, a catalog directory, or an image in a
 * registry, layout or archive that carries either; a sqlite index, as a file or in an image, is a catalog.
 * A path that exists is never taken for an image. Throws OpmateError.
 * (Source: `opm render`, reference resolution.)
 */
export async function openSource(
  reference: string,
  options: SourceOptions,
  allowed: AllowedSources = { bundles: true, catalogs: true },
): Promise<Source> {
  const found = await statIfThere(reference);
  if (found === undefined) return openImageSource(reference, options, allowed);
  if (found.isDirectory()) return openDirectory(reference, options, allowed);
  if (found.isFile() && (await isDatabaseFile(reference))) {
    if (!allowed.catalogs) throw new OpmateError('UNSUPPORTED', 'cannot render sqlite file: not allowed');
    const catalog = await openDatabaseCatalog(reference, reference, options);
    return sourceOf(catalog);
  }
  throw new OpmateError('UNSUPPORTED', `ref ${quoteGo(reference)} is not a directory: not allowed`, {
    hint: 'give the directory of the catalog, the file of a sqlite index, or oci-archive:FILE for an image in a file',
  });
}

/** What stands at a path; undefined where there is nothing, so that the reference must be an image. */
export async function statIfThere(reference: string): Promise<Stats | undefined> {
  try {
    return await stat(reference);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].includes(systemCode(error) ?? '')) return undefined;
    throw fileError(`stat ${reference}`, error);
  }
}

async function openDirectory(
  directory: string,
  options: SourceOptions,
  allowed: AllowedSources,
): Promise<Source> {
  if (await isBundleDirectory(directory)) {
    if (!allowed.bundles) {
      throw new OpmateError(
        'UNSUPPORTED',
        `cannot render bundle directory ${quoteGo(directory)}: not allowed`,
      );
    }
    const { signal, followLinks } = options;
    const files = await readBundleDirectory(directory, { signal, followLinks });
    return { kind: 'bundle', image: '', files, close: nothingToClose };
  }
  if (!allowed.catalogs) {
    throw new OpmateError('UNSUPPORTED', 'cannot render declarative config directory: not allowed');
  }
  return sourceOf(new DirectoryCatalog(directory, directory, options));
}

/** `label` is how messages name the index. */
async function openDatabaseCatalog(file: string, label: string, options: SourceOptions): Promise<Catalog> {
  const { openSqliteCatalog } = await import('../sqlite/read/catalog.js');
  return openSqliteCatalog(file, { ...options, name: label });
}

/** Opens what an image holds, as `openSource` does; never a path. Throws OpmateError. */
export async function openImageSource(
  reference: string | Reference,
  options: SourceOptions,
  allowed: AllowedSources = { bundles: true, catalogs: true },
): Promise<Source> {
  return withImage(reference, options, (image, parsed) => openByLabel(parsed, image, options, allowed));
}

/** Opens the catalog of an image by its digest in a repository, which `subject` names in messages. Throws OpmateError. */
export async function openCatalogIn(
  repository: Repository,
  digest: string,
  subject: Reference,
  options: SourceOptions,
): Promise<CatalogSource> {
  const image = await openImage(repository, digest, options);
  const source = await openByLabel(subject, image, options, { bundles: false, catalogs: true });
  if (source.kind === 'catalog') return source;
  await source.close();
  throw new OpmateError('INVALID', `${subject.text}: not a catalog`);
}

/** Opens the image that a reference names for as long as `work` takes. Throws OpmateError. */
export async function withImage<T>(
  reference: string | Reference,
  options: SourceOptions,
  work: (image: Image, parsed: Reference) => Promise<T>,
): Promise<T> {
  const parsed = typeof reference === 'string' ? parseImageReference(reference) : reference;
  const { logger = silentLogger } = options;
  const task = `pull ${parsed.text}`;
  logger.progress({ task, state: 'start' });
  try {
    const opened = await openReference(parsed, { ...options, connection: await options.connect() });
    try {
      const image = await openImage(opened.repository, opened.reference, options);
      const total = image.manifest.layers.reduce((sum, layer) => sum + layer.size, 0);
      logger.progress({ task, state: 'update', current: 0, total, unit: 'bytes' });
      return await work(image, parsed);
    } finally {
      await opened.close();
    }
  } finally {
    logger.progress({ task, state: 'done' });
  }
}

/** The reference of an image, from what was no path. Throws OpmateError for one that looks like a path, or has no tag. */
export function parseImageReference(reference: string): Reference {
  // Nobody writes an image like this, and a path that existed would have been opened.
  if (/^(?:\.{0,2}\/|~)/.test(reference)) {
    throw new OpmateError('NOT_FOUND', `${reference}: no such file or directory`);
  }
  const parsed = parseReference(reference);
  if (parsed.transport === 'docker' && parsed.tag === undefined && parsed.digest === undefined) {
    throw new OpmateError('INVALID', `${reference}: a tag or digest is needed`, {
      hint: `there is no file or directory of that name; for an image, write ${reference}:TAG or ${reference}@sha256:…`,
    });
  }
  return parsed;
}

/** What a catalog names an image by: a layout or archive has no name that a cluster could pull. */
function pullSpecOf({ transport, text }: Reference): string {
  return transport === 'docker' ? text.replace(/^docker:\/\//, '') : '';
}

async function openByLabel(
  parsed: Reference,
  image: Image,
  options: SourceOptions,
  allowed: AllowedSources,
): Promise<Source> {
  const { labels } = image;
  const reference = parsed.text;
  // An image may have both labels; the database wins, as for `opm`.
  if (labels[imageLabels.database] !== undefined) {
    if (!allowed.catalogs) throw new OpmateError('UNSUPPORTED', 'cannot render sqlite image: not allowed');
    return openDatabaseImage(reference, image, options);
  }
  const configs = labels[imageLabels.configs];
  if (configs !== undefined) {
    if (!allowed.catalogs) {
      throw new OpmateError('UNSUPPORTED', 'cannot render declarative config image: not allowed');
    }
    return openCatalogImage(reference, image, configs, options);
  }
  if (labels[imageLabels.bundlePackage] !== undefined) {
    if (!allowed.bundles) throw new OpmateError('UNSUPPORTED', 'cannot render bundle image: not allowed');
    const { limits = defaultArchiveLimits, signal, logger } = options;
    const tree = await readImage(image, { roots: ['manifests', 'metadata'], limits, signal, logger });
    const files = await bundleFilesOf(tree, { subject: reference, signal });
    return { kind: 'bundle', image: pullSpecOf(parsed), files, close: nothingToClose };
  }
  throw unknownKind(reference, labels);
}

function unknownKind(reference: string, labels: Readonly<Record<string, string>>): OpmateError {
  const keys = Object.keys(labels).sort();
  const hint = `a catalog image has the label ${imageLabels.configs}, a bundle image ${imageLabels.bundlePackage}`;
  if (keys.length === 0) {
    const message = `render ${quoteGo(reference)}: image type could not be determined: image has no labels`;
    return new OpmateError('INVALID', message, { hint });
  }
  const list = keys.map((key) => `\n  ${key}=${labels[key]}`).join('');
  const message = `render ${quoteGo(reference)}: image type could not be determined, found labels${list}`;
  return new OpmateError('INVALID', message, { hint });
}

async function openCatalogImage(
  reference: string,
  image: Image,
  label: string,
  options: SourceOptions,
): Promise<CatalogSource> {
  const root = pathOfLabel(reference, imageLabels.configs, label);
  const { limits = defaultArchiveLimits, signal, logger } = options;
  return openInTemporaryDirectory(options, async (temporary) => {
    const destination = path.join(temporary, 'image');
    const unpacked = await extractImage(image, destination, {
      roots: [root],
      limits,
      signal,
      logger,
    });
    const directory = path.join(destination, root);
    const found = await stat(directory).catch(() => undefined);
    if (!found?.isDirectory()) {
      const what = found === undefined ? 'is not in the image' : 'is not a directory';
      throw new OpmateError(
        'INVALID',
        `${reference}: ${label}, which the label ${imageLabels.configs} names, ${what}`,
        {
          hint: `the label must name the directory of the catalog; ${unpacked.files.length} files were found below it`,
        },
      );
    }
    return sourceOf(new DirectoryCatalog(directory, `${reference}/${root}`));
  });
}

async function openDatabaseImage(
  reference: string,
  image: Image,
  options: SourceOptions,
): Promise<CatalogSource> {
  return openInTemporaryDirectory(options, async (temporary) => {
    const { extractDatabase } = await import('../sqlite/read/index-image.js');
    const file = await extractDatabase(image, path.join(temporary, 'image'), options);
    return sourceOf(await openDatabaseCatalog(file, reference, options));
  });
}

/** A catalog as a source; closing the one closes the other. */
function sourceOf(catalog: Catalog): CatalogSource {
  return { kind: 'catalog', catalog, close: () => catalog.close() };
}
