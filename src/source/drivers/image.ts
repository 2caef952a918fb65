import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { type BundleFiles, readBundleFiles } from '../../bundle/read.js';
import { DirectoryCatalog } from '../../catalog/catalog.js';
import { withOpen, keepOpen } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { silentLogger } from '../../core/log.js';
import { type Reference, formatReference } from '../../core/reference.js';
import { quoteGo } from '../../document/go-json.js';
import { statIfPresent } from '../../files/file-status.js';
import { makeTemporaryDirectory, openInTemporaryDirectory } from '../../files/temporary-directory.js';
import { imageLabels, getLabelPath } from '../../model/image-labels.js';
import { type Image, extractImage, openImage, readImage } from '../../oci/image/image.js';
import { fromDirectory, openReference, withCatalogCache } from '../../oci/image/open.js';
import { missingImageHint } from '../../oci/registry/registry-request.js';
import type { Repository } from '../../oci/registry/repository.js';
import { parseImageReference } from '../parse-place.js';
import { throwAbout } from '../reference-error.js';
import { type ImagePlace, pinReference } from '../place.js';
import {
  type AllowedSources,
  type CatalogSource,
  type Source,
  allSources,
  catalogsOnly,
} from '../source-types.js';
import { type SourceSession, withChanges } from '../session.js';
import { type PlaceState, type ResolvedPlace, type Unpack, nothingToClose } from './driver.js';
import { bundleRoots, fileVersion, openDatabaseCatalog, toSource } from './local.js';

/**
 * Opens the bundle or catalog in an image, detected by its labels; the reference is never a path. Throws OpmateError.
 * (Source: `opm render`, reference resolution.)
 */
export async function openImageSource(
  reference: string | Reference,
  session: SourceSession,
  allowed: AllowedSources = allSources,
): Promise<Source> {
  return withImage(reference, session, (image, parsed) => openByLabel(parsed, image, session, allowed));
}

/** Opens the catalog image with a digest in a repository; `subject` is its name in messages. Throws OpmateError. */
export async function openCatalogIn(
  repository: Repository,
  digest: string,
  subject: Reference,
  session: SourceSession,
): Promise<CatalogSource> {
  const image = await openImage(repository, digest, session);
  const source = await openByLabel(subject, image, session, catalogsOnly);
  if (source.kind === 'catalog') return source;
  await source.close();
  throw new OpmateError('INVALID', 'not a catalog', { subject: subject.text });
}

/** Opens an image, calls `work` and closes it. Throws OpmateError. */
export async function withImage<T>(
  reference: string | Reference,
  session: SourceSession,
  work: (image: Image, parsed: Reference) => Promise<T>,
): Promise<T> {
  const parsed = typeof reference === 'string' ? parseImageReference(reference) : reference;
  const { logger = silentLogger } = session;
  const task = `pull ${parsed.text}`;
  logger.progress({ task, state: 'start' });
  try {
    return await withOpen(openReference(parsed, session), async (opened) => {
      const image = await openImage(opened.repository, opened.reference, session);
      const total = image.manifest.layers.reduce((sum, layer) => sum + layer.size, 0);
      logger.progress({ task, state: 'update', current: 0, total, unit: 'bytes' });
      return work(image, parsed);
    });
  } finally {
    logger.progress({ task, state: 'done' });
  }
}

/** Returns the pull specification of an image; empty for a layout or archive, which clusters cannot pull. */
function getPullSpec({ transport, text }: Reference): string {
  return transport === 'docker' ? text.replace(/^docker:\/\//, '') : '';
}

async function openByLabel(
  parsed: Reference,
  image: Image,
  session: SourceSession,
  allowed: AllowedSources,
): Promise<Source> {
  const { labels } = image;
  const reference = parsed.text;
  // With both labels the database takes precedence, as in `opm`.
  if (labels[imageLabels.database] !== undefined) {
    if (!allowed.catalogs) throw new OpmateError('UNSUPPORTED', 'cannot render sqlite image: not allowed');
    return openDatabaseImage(reference, await withCachedLayers(image, session), session);
  }
  const configs = labels[imageLabels.configs];
  if (configs !== undefined) {
    if (!allowed.catalogs) {
      throw new OpmateError('UNSUPPORTED', 'cannot render declarative config image: not allowed');
    }
    return openCatalogImage(reference, await withCachedLayers(image, session), configs, session);
  }
  if (labels[imageLabels.bundlePackage] !== undefined) {
    if (!allowed.bundles) throw new OpmateError('UNSUPPORTED', 'cannot render bundle image: not allowed');
    const files = await readImageBundle(image, reference, session);
    return { kind: 'bundle', image: getPullSpec(parsed), files, close: nothingToClose };
  }
  throw unknownKind(reference, labels);
}

/**
 * Reads the bundle files of an image, regardless of its labels. Throws OpmateError; for an image without bundle files
 * INVALID if it is labeled as a catalog, else NOT_FOUND.
 */
export async function readImageBundle(
  image: Image,
  subject: string,
  session: SourceSession,
): Promise<BundleFiles> {
  const tree = await readImage(image, { ...session, roots: bundleRoots });
  if (!bundleRoots.some((root) => tree.directories.has(root))) checkKind(subject, image);
  return readBundleFiles(tree, { subject, signal: session.signal });
}

/** Throws OpmateError INVALID for an image labeled as a catalog or index. */
function checkKind(subject: string, { labels }: Image): void {
  const kind =
    labels[imageLabels.configs] !== undefined
      ? 'a catalog image'
      : labels[imageLabels.database] !== undefined
        ? 'an index image'
        : undefined;
  if (kind === undefined) return;
  const hint = 'specify the images of its bundles';
  throw new OpmateError('INVALID', `is ${kind}, not a bundle`, { subject, hint });
}

/** Returns the image with its layers read through the catalog cache. */
async function withCachedLayers(image: Image, session: SourceSession): Promise<Image> {
  return { ...image, repository: await withCatalogCache(image.repository, session) };
}

function unknownKind(reference: string, labels: Readonly<Record<string, string>>): OpmateError {
  const subject = `render ${quoteGo(reference)}`;
  const keys = Object.keys(labels).sort();
  const hint = `use a catalog image with the label ${imageLabels.configs}, or a bundle image with ${imageLabels.bundlePackage}`;
  if (keys.length === 0) {
    return new OpmateError('INVALID', 'image type could not be determined: image has no labels', {
      subject,
      hint,
    });
  }
  const list = keys.map((key) => `\n  ${key}=${labels[key]}`).join('');
  const problem = `image type could not be determined, found labels${list}`;
  return new OpmateError('INVALID', problem, { subject, hint });
}

async function openCatalogImage(
  reference: string,
  image: Image,
  label: string,
  session: SourceSession,
): Promise<CatalogSource> {
  const root = getLabelPath(reference, imageLabels.configs, label);
  return openInTemporaryDirectory(session, async (temporary) => {
    const destination = path.join(temporary, 'image');
    const unpacked = await extractImage(image, destination, { ...session, roots: [root] });
    const directory = path.join(destination, root);
    const stats = await statIfPresent(directory);
    if (!stats?.isDirectory()) {
      const problem = stats === undefined ? 'does not exist in the image' : 'is not a directory';
      throw new OpmateError('INVALID', `label ${imageLabels.configs}: ${label} ${problem}`, {
        subject: reference,
        hint: `set the label to the directory of the catalog; it contains ${unpacked.files.length} files`,
      });
    }
    return toSource(new DirectoryCatalog(directory, `${reference}/${root}`));
  });
}

async function openDatabaseImage(
  reference: string,
  image: Image,
  session: SourceSession,
): Promise<CatalogSource> {
  return openInTemporaryDirectory(session, async (temporary) => {
    const { extractDatabase } = await import('../../sqlite/read/index-image.js');
    const file = await extractDatabase(image, path.join(temporary, 'image'), session);
    return toSource(await openDatabaseCatalog(file, reference, session));
  });
}

/** Returns the current digest of a reference. Throws OpmateError NOT_FOUND. */
export async function digestOfImage(reference: Reference, session: SourceSession): Promise<string> {
  if (reference.transport === 'docker' && reference.digest !== undefined) return reference.digest;
  return withOpen(openReference(reference, session), async (opened) => {
    const descriptor = await opened.repository.headManifest(opened.reference, session);
    if (descriptor !== undefined) return descriptor.digest;
    throw new OpmateError('NOT_FOUND', 'not found', {
      subject: formatReference(reference),
      hint: missingImageHint,
    });
  });
}

/** Resolves the digest of an image; an unchanged archive keeps its known state. Throws OpmateError. */
export async function resolveImagePlace(
  place: ImagePlace,
  known: PlaceState | undefined,
  session: SourceSession,
): Promise<ResolvedPlace> {
  const reference = parseImageReference(place.ref);
  const { transport } = reference;
  return keepOpen(openAccess(place, session), async (access) => {
    const own = access.session;
    const isFile = transport === 'oci-archive' || transport === 'docker-archive';
    const validator = isFile ? await fileVersion(fromDirectory(session, reference.path)) : undefined;
    if (known !== undefined && validator !== undefined && known.validator === validator) {
      return toResolvedPlace({ id: known.id, ref: known.ref, validator }, reference, own, access.close);
    }
    const pinned = pinReference(reference, await digestOfImage(reference, own));
    const { os, architecture } = session.platform ?? session.hostPlatform;
    const id = `${pinned.text}#${os}/${architecture}`;
    return toResolvedPlace({ id, ref: pinned.text, validator }, pinned, own, access.close);
  });
}

function toResolvedPlace(
  state: PlaceState,
  reference: Reference,
  session: SourceSession,
  close: () => Promise<void>,
): ResolvedPlace {
  const pinned = { ...reference, text: state.ref };
  return {
    state,
    isImmutable: reference.digest !== undefined,
    open: (allowed) => openImageSource(pinned, session, allowed).catch(throwAbout(state.ref)),
    unpack: unpackImage(pinned, session),
    close,
  };
}

/** Returns a function that unpacks an image; it throws OpmateError UNSUPPORTED for a catalog image. */
function unpackImage(reference: Reference, session: SourceSession): Unpack {
  return (destination, roots) =>
    withImage(reference, session, async (image) => {
      for (const label of [imageLabels.database, imageLabels.configs]) {
        if (image.labels[label] === undefined) continue;
        throw new OpmateError('UNSUPPORTED', 'is a catalog, not a bundle', {
          subject: reference.text,
          hint: `use the image of one bundle: this one has the label ${label}`,
        });
      }
      const { problems } = await extractImage(image, destination, { ...session, roots });
      return { directory: destination, problems };
    });
}

/** Returns a session that connects with the credentials and certificates of a place, if it has any. */
async function openAccess(
  { ref, credentials, certificateData, insecureSkipTlsVerify }: ImagePlace,
  session: SourceSession,
): Promise<{ session: SourceSession; close: () => Promise<void> }> {
  if (credentials === undefined && certificateData === undefined && insecureSkipTlsVerify !== true) {
    return { session, close: nothingToClose };
  }
  if (credentials !== undefined && credentials.type !== 'docker') {
    throw new OpmateError('INVALID', `unsupported credentials type ${credentials.type} for an image`, {
      subject: ref,
      hint: 'use a Secret of type kubernetes.io/dockerconfigjson',
    });
  }
  const temporary = await makeTemporaryDirectory(session.temporaryDirectory, session.now());
  try {
    const authFile = path.join(temporary.path, 'auth.json');
    const caFile = path.join(temporary.path, 'ca.pem');
    if (credentials !== undefined) await writeFile(authFile, credentials.config, { mode: 0o600 });
    if (certificateData !== undefined) await writeFile(caFile, certificateData, { mode: 0o600 });
    const connection = await session.connectAnew({
      ...(credentials !== undefined && { authFile }),
      ...(certificateData !== undefined && { caFile }),
      ...(insecureSkipTlsVerify === true && { skipTlsVerify: true }),
    });
    const close = async (): Promise<void> => {
      connection.close();
      await temporary.remove();
    };
    return { session: withChanges(session, { connect: () => connection }), close };
  } catch (error) {
    await temporary.remove();
    throw error;
  }
}
