import type { FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { decompress } from '../../archive/decompress.js';
import type { ArchiveLimits } from '../../archive/limits.js';
import { type TarSlice, indexTar } from '../../archive/tar-index.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { computeDigest, digestPieces } from '../../core/digest.js';
import { LimitError, OpmateError, fileError } from '../../core/errors.js';
import { openNamelessFile } from '../../files/nameless-file.js';
import { openRegularFile } from '../../files/read-file.js';
import { ContentRepository, type ContentSource, type LocalRepository } from '../layout/layout-content.js';
import { readBytes, readRegion } from '../../files/file-region.js';
import { readManifestFacts } from '../layout/layout-manifest.js';
import { parseLayoutIndex, refNameAnnotation } from '../layout/layout-store.js';
import { type Descriptor, type ImageManifest, mediaTypes, maxManifestBytes } from '../image/types.js';
import { openJson } from '../../document/document.js';

interface ArchiveOptions extends CancelOptions {
  /** Where a compressed archive is unpacked until `close`; without it one is refused. */
  temporaryDirectory?: string | undefined;
  /** Caps on unpacking; the defaults of `defaultArchiveLimits` when left out. */
  limits?: ArchiveLimits | undefined;
}

/** An archive file as a repository that can be read until it is closed. */
export interface ArchiveRepository extends LocalRepository {
  close(): Promise<void>;
}

/**
 * Opens a tar archive of an OCI image layout (`oci-archive:`).
 * Throws OpmateError NOT_FOUND, INVALID, SYNTAX, UNSAFE, UNSUPPORTED, LIMIT or IO.
 */
export async function openOciArchive(path: string, options: ArchiveOptions = {}): Promise<ArchiveRepository> {
  const file = await ArchiveFile.open(path, options);
  return await file.orClose(
    async () => new OpenedArchive(await readOciSource(file, `oci-archive:${path}`), file),
  );
}

/**
 * Opens an archive that `docker save` or `podman save` wrote (`docker-archive:`). Images are named by their
 * repository tags; a bare tag or a short name such as `alpine:3` will do where it means one image only.
 * An image whose manifest is not in the archive gets one with uncompressed layers, the same every time.
 * Throws what `openOciArchive` throws.
 */
export async function openDockerArchive(
  path: string,
  options: ArchiveOptions = {},
): Promise<ArchiveRepository> {
  const file = await ArchiveFile.open(path, options);
  return await file.orClose(
    async () => new OpenedArchive(await readDockerSource(file, `docker-archive:${path}`), file),
  );
}

class OpenedArchive extends ContentRepository implements ArchiveRepository {
  readonly #file: ArchiveFile;
  constructor(source: ContentSource, file: ArchiveFile) {
    super(source);
    this.#file = file;
  }
  close(): Promise<void> {
    return this.#file.close();
  }
}

/** Random access to the files of a tar archive. */
class ArchiveFile {
  readonly path: string;
  readonly files: ReadonlyMap<string, TarSlice>;
  readonly #handle: FileHandle;

  private constructor(path: string, files: Map<string, TarSlice>, handle: FileHandle) {
    this.path = path;
    this.files = files;
    this.#handle = handle;
  }

  static async open(path: string, options: ArchiveOptions): Promise<ArchiveFile> {
    const handle = await openPlain(path, options);
    try {
      const limit = options.limits?.maxEntries;
      const files = await indexTar(path, { handle, ...(limit !== undefined && { maxEntries: limit }) });
      return new ArchiveFile(path, files, handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  openSlice(slice: TarSlice): Readable {
    if (slice.size === 0) return Readable.from([]);
    // A stream over the descriptor would close it, when it is destroyed, for all that are read at the time.
    return Readable.from(this.#read(slice), { objectMode: false });
  }

  async *#read({ offset, size }: TarSlice): AsyncGenerator<Buffer> {
    for await (const piece of readRegion(this.#handle, offset, size, this.path)) yield Buffer.from(piece);
  }

  /** Reads a small file whole, or undefined if missing. */
  async read(name: string, limit: number): Promise<Buffer | undefined> {
    const slice = this.files.get(name);
    if (slice === undefined) return undefined;
    if (slice.size > limit)
      throw new LimitError(`${name} is larger than ${limit} bytes`, { subject: this.path });
    return await this.readBytes(slice, slice.size);
  }

  async readBytes(slice: TarSlice, length: number): Promise<Buffer> {
    return readBytes(this.#handle, slice.offset, Math.min(length, slice.size));
  }

  async orClose<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}

/** Opens an archive, a gzip or zstd one as what it unpacks to. */
async function openPlain(path: string, options: ArchiveOptions): Promise<FileHandle> {
  let handle: FileHandle | undefined;
  try {
    handle = await openRegularFile(path);
    if (!isCompressed(await readBytes(handle, 0, 4))) return handle;
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
    throw fileError(`${temporaryDirectory}: no temporary file can be made`, error);
  });
  try {
    const plain = decompress(handle.createReadStream({ start: 0 }), { label: path, limits, signal });
    for await (const chunk of plain) {
      await target.writeFile(chunk).catch((error: unknown) => {
        throw fileError(`${path}: cannot be unpacked to ${temporaryDirectory}`, error);
      });
    }
    return target;
  } catch (error) {
    await target.close();
    throw fileError(path, error);
  }
}

function isCompressed(head: Buffer): boolean {
  return (
    head.subarray(0, 2).equals(Buffer.from([0x1f, 0x8b])) ||
    head.equals(Buffer.from([0x28, 0xb5, 0x2f, 0xfd]))
  );
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

/** A tar archive without the manifest that `docker save` writes. */
export class NotDockerArchiveError extends OpmateError {}

async function readDockerSource(file: ArchiveFile, name: string): Promise<ContentSource> {
  const bytes = await file.read('manifest.json', maxManifestBytes);
  if (bytes === undefined) {
    throw new NotDockerArchiveError(
      'INVALID',
      `${file.path}: not an archive of docker save: no manifest.json`,
      {
        hint: file.files.has('oci-layout')
          ? `use oci-archive:${file.path}: it is an OCI image layout`
          : file.files.has('repositories')
            ? 'save the image again: archives from before Docker 1.10 are not supported'
            : undefined,
      },
    );
  }
  const contents = new Map<string, TarSlice | Buffer>();
  // Newer Dockers save an OCI layout beside; its manifests are the real ones, with the digests of registries.
  const stored =
    file.files.has('oci-layout') && file.files.has('index.json')
      ? await readOciSource(file, name)
      : undefined;
  const realByConfig = new Map<string, Descriptor>();
  if (stored !== undefined) {
    for (const [path, slice] of file.files) {
      const match = /^blobs\/([^/]+)\/([^/]+)$/.exec(path);
      if (match) contents.set(`${match[1]}:${match[2]}`, slice);
    }
    await new ContentRepository(stored).walk(await stored.entries(), {}, (manifest, facts) => {
      const config = facts.blobs[0];
      if (config !== undefined && facts.manifests.length === 0) realByConfig.set(config.digest, manifest);
    });
  }
  const entries: Descriptor[] = [];
  for (const image of parseSavedImages(bytes, file.path)) {
    const config = await file.read(image.config, maxManifestBytes);
    if (config === undefined) throw missing(file, image.config);
    const configDigest = computeDigest(config);
    const manifest = realByConfig.get(configDigest) ?? (await synthesize(file, image, config, contents));
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

/** Makes the manifest that an image of an older archive lacks; its layers are the tar files as they are. */
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
      `${image.config}: names ${diffIds.length} layers, manifest.json ${image.layers.length}`,
      { subject: file.path },
    );
  }
  const layers: Descriptor[] = [];
  for (const [i, path] of image.layers.entries()) {
    const slice = file.files.get(path);
    if (slice === undefined) throw missing(file, path);
    const compressed = isCompressed(await file.readBytes(slice, 4));
    // A plain tar is what the config's diff id is the digest of; reading it checks that.
    const digest = compressed ? await digestPieces(file.openSlice(slice)) : (diffIds[i] as string);
    const gzip = compressed && (await file.readBytes(slice, 1))[0] === 0x1f;
    const mediaType = !compressed
      ? mediaTypes.ociLayer
      : gzip
        ? mediaTypes.ociLayerGzip
        : mediaTypes.ociLayerZstd;
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

/** Docker's short forms: `docker.io/library/` and `docker.io/` may be left out. */
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
  return new OpmateError('INVALID', `manifest.json names ${name}, which is not in the archive`, {
    subject: file.path,
  });
}
