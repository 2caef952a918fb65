import { withOpen } from '../../core/concurrency.js';
import { readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { openInTemporaryDirectory } from '../../files/temporary-directory.js';
import { type Catalog, DirectoryCatalog } from '../../catalog/catalog.js';
import { fillDirectory, requireEmptyDirectory } from '../../files/fill-directory.js';
import { moveWhole } from '../../files/move-whole.js';
import { stagingBeside } from '../../files/staging.js';
import { OpmateError, fileError } from '../../core/errors.js';
import type { Reference } from '../../core/reference.js';
import { extractImage } from '../../oci/image/image.js';
import { parseManifest } from '../../oci/image/manifest.js';
import { openReference } from '../../oci/image/open.js';
import { formatPlatform, isAttestation, getSubject } from '../../oci/image/platform.js';
import type { Platform } from '../../oci/image/types.js';
import { type Session, withChanges } from '../../source/session.js';
import { openImageSource, withImage } from '../../source/drivers/image.js';
import { openSource } from '../../source/source.js';
import { isDatabaseFile } from '../../sqlite/schema/database.js';

/** A catalog opened for mirroring. */
export interface OpenedSource {
  catalog: Catalog;
  /** Source image, by digest; undefined for a local catalog. */
  image: Reference | undefined;
  close(): Promise<void>;
}

/** Options of opening a catalog image. */
export interface OpenCatalogOptions {
  session: Session;
  /** Matches `os/architecture` of exactly one platform of an index. */
  platformPattern: RegExp;
  /** Path of the catalog in the image, which overrides labels, and directory to unpack it to. */
  path?: { inside: string; outside: string | undefined } | undefined;
}

/**
 * Opens a catalog image by the digest that its tag has now. Throws OpmateError; INVALID unless the pattern matches exactly
 * one platform.
 */
export async function openCatalogImage(
  reference: Reference,
  options: OpenCatalogOptions,
): Promise<OpenedSource> {
  const { session, platformPattern } = options;
  const { pinned, platform } = await withOpen(openReference(reference, session), async (opened) => {
    const { descriptor, bytes } = await opened.repository.getManifest(opened.reference, session);
    const subject = getSubject(opened.repository.name, opened.reference);
    const parsed = parseManifest(bytes, { subject, mediaType: descriptor.mediaType });
    const pinned = { ...reference, digest: descriptor.digest };
    if (parsed.kind !== 'index' || session.platform !== undefined)
      return { pinned, platform: session.platform };
    const entries = parsed.index.manifests.filter((entry) => !isAttestation(entry));
    const platforms = entries.flatMap((entry) => entry.platform ?? []);
    return { pinned, platform: matchPlatform(platforms, platformPattern, reference.text) };
  });
  const chosen = withChanges(session, { platform });
  if (options.path !== undefined) return openUnpacked(pinned, options.path, chosen);
  const source = await openImageSource(pinned, chosen, { bundles: false, catalogs: true });
  if (source.kind !== 'catalog')
    throw new OpmateError('INTERNAL', 'not a catalog', { subject: reference.text });
  return { catalog: source.catalog, image: pinned, close: () => source.close() };
}

/** Opens the catalog in a directory or database file. Throws OpmateError. */
export async function openLocalCatalog(file: string, session: Session): Promise<OpenedSource> {
  const source = await openSource(file, session, { bundles: false, catalogs: true });
  if (source.kind !== 'catalog') throw new OpmateError('INTERNAL', 'not a catalog', { subject: file });
  return { catalog: source.catalog, image: undefined, close: () => source.close() };
}

function matchPlatform(
  platforms: readonly Platform[],
  pattern: RegExp,
  subject: string,
): Platform | undefined {
  if (platforms.length === 0) return undefined;
  const byText = new Map(platforms.map((platform) => [formatPlatform(platform), platform]));
  const matching = [...byText].filter(([text]) => pattern.test(text));
  if (matching.length === 1) return matching[0]?.[1];
  const all = [...byText.keys()].join(', ');
  const count = matching.length === 0 ? 'none' : `${matching.length}`;
  throw new OpmateError('INVALID', `${count} of its platforms match ${pattern.source}: ${all}`, {
    subject,
    hint: 'select exactly one with options.platform',
  });
}

async function openUnpacked(
  reference: Reference,
  { inside, outside }: { inside: string; outside: string | undefined },
  session: Session,
): Promise<OpenedSource> {
  const { limits, logger, signal } = session;
  const root = path.posix.normalize(`/${inside}`).replace(/^\/|\/$/g, '');
  const openAt = async (target: string): Promise<OpenedSource> => {
    await withImage(reference, session, (image) =>
      fillDirectory(target, async (staging) => {
        const unpacked = stagingBeside(staging);
        try {
          await extractImage(image, unpacked, { roots: [root], limits, logger, signal });
          await moveInto(path.join(unpacked, root), staging, `${reference.text}: ${inside}`);
        } finally {
          await rm(unpacked, { recursive: true, force: true });
        }
      }),
    );
    const database = await findDatabase(target);
    if (database !== undefined) return { ...(await openLocalCatalog(database, session)), image: reference };
    const catalog = new DirectoryCatalog(target, `${reference.text}/${root}`);
    return { catalog, image: reference, close: () => catalog.close() };
  };
  if (outside === undefined) {
    return openInTemporaryDirectory(session, (directory) => openAt(path.join(directory, 'index')));
  }
  await requireEmptyDirectory(outside);
  return openAt(path.resolve(outside));
}

/** Moves the content of a directory, or a single file, into an empty directory. */
async function moveInto(from: string, directory: string, subject: string): Promise<void> {
  try {
    const isDirectory = (await stat(from)).isDirectory();
    await moveWhole(from, isDirectory ? directory : path.join(directory, path.basename(from)));
  } catch (error) {
    throw fileError(subject, error);
  }
}

/** Returns the first database file of a directory tree, by path. */
async function findDatabase(directory: string): Promise<string | undefined> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
  for (const file of files.sort()) if (await isDatabaseFile(file)) return file;
  return undefined;
}
