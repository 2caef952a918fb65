import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { decompress } from '../../archive/decompress.js';
import type { ArchiveLimits } from '../../archive/limits.js';
import { type TarSlice, indexTar } from '../../archive/tar-index.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { computeDigest, digestPieces } from '../../core/digest.js';
import { LimitError, OpmateError, fileError, throwFileError } from '../../core/errors.js';
import { openNamelessFile } from '../../files/nameless-file.js';
import { openRegularFile } from '../../files/read-file.js';
import {
  type ContentSource,
  type LocalRepository,
  createContentRepository,
} from '../layout/layout-content.js';
import { readBytes, readRegion } from '../../files/file-region.js';
import { readManifestFacts } from '../image/manifest.js';
import { parseLayoutIndex, refNameAnnotation } from '../layout/layout-store.js';
import { type Descriptor, type ImageManifest, mediaTypes, maxManifestBytes } from '../image/types.js';
import { openJson } from '../../document/document.js';

interface ArchiveOptions extends CancelOptions {
  /** Directory for the unpacked content of a compressed archive; compressed archives are refused without it. */
  temporaryDirectory?: string | undefined;
  /** Limits of unpacking; default: `defaultArchiveLimits`. */
  limits?: ArchiveLimits | undefined;
}

/** An archive file as a read-only repository, until it is closed. */
export interface ArchiveRepository extends LocalRepository {
  close(): Promise<void>;
}

/**
 * Opens a tar archive of an OCI image layout (`oci-archive:`). Throws OpmateError NOT_FOUND, INVALID, SYNTAX, UNSAFE,
 * UNSUPPORTED, LIMIT or IO.
 */
export function openOciArchive(path: string, options: ArchiveOptions = {}): Promise<ArchiveRepository> {
  return openArchive(path, options, (file) => readOciSource(file, `oci-archive:${path}`));
}

/**
 * Opens an archive of `docker save` or `podman save` (`docker-archive:`). Images are named by their repository tags; a
 * bare tag or a short name such as `alpine:3` is accepted if unambiguous. An image without manifest gets a reproducible
 * one with uncompressed layers. Throws what `openOciArchive` throws.
 */
export function openDockerArchive(path: string, options: ArchiveOptions = {}): Promise<ArchiveRepository> {
  return openArchive(path, options, (file) => readDockerSource(file, `docker-archive:${path}`));
}

async function openArchive(
  path: string,
  options: ArchiveOptions,
  readSource: (file: ArchiveFile) => Promise<ContentSource>,
): Promise<ArchiveRepository> {
  const handle = await openUncompressed(path, options);
  const close = () => handle.close();
  try {
    const maxEntries = options.limits?.maxEntries;
    const files = await indexTar(path, { handle, ...(maxEntries !== undefined && { maxEntries }) });
    const source = await readSource(new ArchiveFile(path, files, handle));
    return { ...createContentRepository(source), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Random access to the files of a tar archive. */
class ArchiveFile {
  readonly path: string;
  readonly files: ReadonlyMap<string, TarSlice>;
  readonly #handle: FileHandle;

  constructor(path: string, files: Map<string, TarSlice>, handle: FileHandle) {
    this.path = path;
    this.files = files;
    this.#handle = handle;
  }

  openSlice(slice: TarSlice): Readable {
    if (slice.size === 0) return Readable.from([]);
    // A stream over the descriptor would close it for all readers when it is destroyed.
    return Readable.from(this.#read(slice), { objectMode: false });
  }

  async *#read({ offset, size }: TarSlice): AsyncGenerator<Buffer> {
    for await (const piece of readRegion(this.#handle, offset, size, this.path)) yield Buffer.from(piece);
  }

  /** Reads a file whole; undefined if missing. Throws LimitError. */
  async read(name: string, limit: number): Promise<Buffer | undefined> {
    const slice = this.files.get(name);
    if (slice === undefined) return undefined;
    if (slice.size > limit)
      throw new LimitError(`${name} is larger than ${limit} bytes`, { subject: this.path });
    return this.readStart(slice, slice.size);
  }

  /** Returns the first bytes of a file. */
  readStart(slice: TarSlice, length: number): Promise<Buffer> {
    return readBytes(this.#handle, slice.offset, Math.min(length, slice.size));
  }
}

/** Opens an archive for reading, unpacking gzip or zstd to a temporary file. */
async function openUncompressed(path: string, options: ArchiveOptions): Promise<FileHandle> {
  let handle: FileHandle | undefined;
  try {
    handle = await openRegularFile(path);
    if (detectCompression(await readBytes(handle, 0, 4)) === undefined) return handle;
  } catch (error) {
    await handle?.close();
    throw fileError(path, error);
  }
  const { temporaryDirectory, limits, signal } = options;
  if (temporaryDirectory === undefined) {
    await handle.close();
    throw new OpmateError('UNSUPPORTED', 'compressed archive', {
      subject: path,
      hint: 'unpack it first, e.g. with gunzip',
    });
  }
  const target = await openNamelessFile(temporaryDirectory).catch(async (error: unknown) => {
    await handle.close();
    throw fileError(`${temporaryDirectory}: cannot create a temporary file`, error);
  });
  try {
    const plain = decompress(handle.createReadStream({ start: 0 }), { label: path, limits, signal });
    for await (const chunk of plain) {
      await target.writeFile(chunk).catch(throwFileError(`${path}: cannot unpack to ${temporaryDirectory}`));
    }
    return target;
  } catch (error) {
    await target.close();
    throw fileError(path, error);
  }
}

/** Returns the layer media type of a compressed file by its first bytes; undefined for other content. */
function detectCompression(head: Buffer): string | undefined {
  if (head.subarray(0, 2).equals(Buffer.from([0x1f, 0x8b]))) return mediaTypes.ociLayerGzip;
  if (head.equals(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]))) return mediaTypes.ociLayerZstd;
  return undefined;
}

async function readOciSource(file: ArchiveFile, name: string): Promise<ContentSource> {
  const index = await file.read('index.json', 64 * 1024 * 1024);
  if (index === undefined || !file.files.has('oci-layout')) {
    throw new OpmateError('INVALID', 'not an archive of an OCI image layout', {
      subject: file.path,
      hint: file.files.has('manifest.json')
        ? `use docker-archive:${file.path}: it is an archive of docker save`
        : undefined,
    });
  }
  const { entries } = parseLayoutIndex(index, `${file.path}: index.json`);
  const slice = (digest: string) => file.files.get(`blobs/${digest.replace(':', '/')}`);
  return {
    name,
    entries: async () => entries,
    blobSize: async (digest) => slice(digest)?.size,
    openBlob: async (digest) => file.openSlice(slice(digest) as TarSlice),
  };
}

interface SavedImage {
  config: string;
  tags: string[];
  layers: string[];
}

/** A tar archive without the manifest of `docker save`. */
export class NotDockerArchiveError extends OpmateError {}

async function readDockerSource(file: ArchiveFile, name: string): Promise<ContentSource> {
  const isLayout = file.files.has('oci-layout');
  const bytes = await file.read('manifest.json', maxManifestBytes);
  if (bytes === undefined) {
    const isOld = file.files.has('repositories');
    const otherHint = isOld ? 'save the image again: Docker before 1.10 is not supported' : undefined;
    throw new NotDockerArchiveError('INVALID', 'not an archive of docker save: no manifest.json', {
      subject: file.path,
      hint: isLayout ? `use oci-archive:${file.path}: it is an OCI image layout` : otherHint,
    });
  }
  const contents = new Map<string, TarSlice | Buffer>();
  // Newer versions of Docker also save an OCI layout, whose manifests have the digests of registries.
  const stored = isLayout && file.files.has('index.json') ? await readOciSource(file, name) : undefined;
  const manifestsByConfig = new Map<string, Descriptor>();
  if (stored !== undefined) {
    for (const [path, slice] of file.files) {
      const match = /^blobs\/([^/]+)\/([^/]+)$/.exec(path);
      if (match) contents.set(`${match[1]}:${match[2]}`, slice);
    }
    await createContentRepository(stored).walk(await stored.entries(), {}, (manifest, facts) => {
      const config = facts.blobs[0];
      if (config !== undefined && facts.manifests.length === 0)
        manifestsByConfig.set(config.digest, manifest);
    });
  }
  const entries: Descriptor[] = [];
  for (const image of parseSavedImages(bytes, file.path)) {
    const config = await file.read(image.config, maxManifestBytes);
    if (config === undefined) throw missing(file, image.config);
    const configDigest = computeDigest(config);
    const manifest = manifestsByConfig.get(configDigest) ?? (await synthesize(file, image, config, contents));
    const { mediaType, digest, size } = manifest;
    if (image.tags.length === 0) entries.push({ mediaType, digest, size });
    for (const tag of image.tags)
      entries.push({ mediaType, digest, size, annotations: { [refNameAnnotation]: tag } });
  }
  return {
    name,
    entries: async () => entries,
    blobSize: async (digest) => {
      const content = contents.get(digest);
      return Buffer.isBuffer(content) ? content.length : content?.size;
    },
    openBlob: async (digest) => {
      const content = contents.get(digest) as TarSlice | Buffer;
      return Buffer.isBuffer(content) ? Readable.from([content]) : file.openSlice(content);
    },
    resolve: findByDockerName,
  };
}

/** Returns a manifest for an image of an older archive, with its unchanged tar files as layers. */
async function synthesize(
  file: ArchiveFile,
  image: SavedImage,
  config: Buffer,
  contents: Map<string, TarSlice | Buffer>,
): Promise<Descriptor> {
  const diffIds = readDiffIds(config, `${file.path}: ${image.config}`);
  if (diffIds.length !== image.layers.length) {
    throw new OpmateError(
      'INVALID',
      `${image.config}: ${diffIds.length} layers, but ${image.layers.length} in manifest.json`,
      { subject: file.path },
    );
  }
  const layers: Descriptor[] = [];
  for (const [i, path] of image.layers.entries()) {
    const slice = file.files.get(path);
    if (slice === undefined) throw missing(file, path);
    const compressedType = detectCompression(await file.readStart(slice, 4));
    // The diff ID is the digest of an uncompressed tar; reading the layer verifies it.
    const digest =
      compressedType === undefined ? (diffIds[i] as string) : await digestPieces(file.openSlice(slice));
    const mediaType = compressedType ?? mediaTypes.ociLayer;
    contents.set(digest, slice);
    layers.push({ mediaType, digest, size: slice.size });
  }
  const configDigest = computeDigest(config);
  contents.set(configDigest, config);
  const manifest: ImageManifest = {
    schemaVersion: 2,
    mediaType: mediaTypes.ociManifest,
    config: { mediaType: mediaTypes.ociConfig, digest: configDigest, size: config.length },
    layers,
  };
  const bytes = Buffer.from(JSON.stringify(manifest));
  readManifestFacts(bytes, `${file.path}: ${image.config}`);
  const digest = computeDigest(bytes);
  contents.set(digest, bytes);
  return { mediaType: mediaTypes.ociManifest, digest, size: bytes.length };
}

function readDiffIds(config: Buffer, subject: string): string[] {
  const root = openJson(config, { name: subject, kind: 'reference', code: 'INVALID' });
  return root.field('rootfs').field('diff_ids').optionalTextList(Infinity) ?? [];
}

function parseSavedImages(bytes: Buffer, path: string): SavedImage[] {
  const root = openJson(bytes, { name: `${path}: manifest.json`, kind: 'reference', code: 'INVALID' });
  return root.list().map((item) => ({
    config: item.field('Config').anyText(),
    tags: item.field('RepoTags').optionalTextList(Infinity) ?? [],
    layers: item.field('Layers').optionalTextList(Infinity) ?? [],
  }));
}

/** Finds an image by a name of Docker, in which `docker.io/library/` and `docker.io/` are optional. */
function findByDockerName(reference: string, entries: readonly Descriptor[]): Descriptor | undefined {
  const shorten = (name: string) => name.replace(/^(?:docker\.io\/library\/|docker\.io\/|library\/)/, '');
  const getName = (entry: Descriptor) => entry.annotations?.[refNameAnnotation] ?? '';
  const exact = entries.find((entry) => getName(entry) === reference);
  if (exact !== undefined) return exact;
  const short = entries.filter((entry) => shorten(getName(entry)) === shorten(reference));
  const matches =
    short.length > 0 ? short : entries.filter((entry) => getName(entry).endsWith(`:${reference}`));
  return new Set(matches.map((entry) => entry.digest)).size === 1 ? matches[0] : undefined;
}

function missing(file: ArchiveFile, name: string): OpmateError {
  return new OpmateError('INVALID', `${name} of manifest.json not found`, { subject: file.path });
}
