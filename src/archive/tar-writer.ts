import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { type CancelOptions, withOpen } from '../core/concurrency.js';
import { OpmateError, systemCode, throwIfCancelled, writeError } from '../core/errors.js';
import { compareBytes } from '../core/order.js';
import { type FilePart, FilePartReader } from '../files/file-parts.js';

type Pack = ReturnType<typeof import('./tar-pack.js').pack>;

/** A file, directory or symbolic link to write; parent directories are written too. */
export interface TarInput {
  /** Relative path `a/b/c`, without `.`, `..` or empty parts. */
  path: string;
  /** Default: `file`. */
  type?: 'file' | 'directory' | 'symlink';
  /** Target of a symbolic link. */
  target?: string;
  /** Content of a file, or its source. */
  content?: Buffer | FilePart;
  /** Default: 0644 for files, 0755 for directories, 0777 for links. */
  mode?: number;
}

interface WriteTarOptions {
  /** Modification time of all entries; default: 1970. */
  mtime?: Date;
}

/**
 * Writes a tar archive whose bytes depend on paths, modes, contents and `mtime` alone: entries in byte order, owner
 * and group 0 without names, ustar, with PAX records for long names. Names are collected before the first byte;
 * contents are streamed.
 *
 * The stream fails with OpmateError INVALID for an invalid or duplicate path, or a file whose length changed.
 */
export function writeTar(
  entries: AsyncIterable<TarInput> | Iterable<TarInput>,
  options: WriteTarOptions = {},
): Readable {
  return Readable.from(tarChunks(entries, options), { objectMode: false });
}

/** Maximum size of a file that is read whole before it is packed. */
const maxHeldFile = 256 * 1024;

async function* tarChunks(
  entries: AsyncIterable<TarInput> | Iterable<TarInput>,
  { mtime = new Date(0) }: WriteTarOptions,
): AsyncGenerator<Buffer> {
  const inputs = await orderInputs(entries);
  const { pack } = await import('./tar-pack.js');
  const archive = pack({ highWaterMark: 256 * 1024 });
  const filling = fill(archive, inputs, mtime).catch((error: Error) => archive.destroy(error));
  try {
    for await (const chunk of archive as AsyncIterable<Buffer>) yield chunk;
    await filling;
  } finally {
    archive.destroy();
  }
}

async function orderInputs(entries: AsyncIterable<TarInput> | Iterable<TarInput>): Promise<TarInput[]> {
  const inputs = new Map<string, TarInput>();
  for await (const input of entries) {
    const { path } = input;
    if (path.includes('\0') || path.split('/').some((part) => part === '' || part === '.' || part === '..')) {
      throw new OpmateError('INVALID', 'invalid path in an archive', { subject: JSON.stringify(path) });
    }
    if (inputs.has(path)) throw new OpmateError('INVALID', 'duplicate path in an archive', { subject: path });
    inputs.set(path, input);
  }
  for (const path of [...inputs.keys()]) {
    for (let slash = path.lastIndexOf('/'); slash > 0; slash = path.lastIndexOf('/', slash - 1)) {
      const directory = path.slice(0, slash);
      const input = inputs.get(directory);
      if (input === undefined) inputs.set(directory, { path: directory, type: 'directory' });
      else if (input.type !== 'directory') {
        throw new OpmateError('INVALID', 'both a file and a directory in one archive', {
          subject: directory,
        });
      }
    }
  }
  return [...inputs.values()].sort((a, b) => compareBytes(a.path, b.path));
}

const defaultModes = { file: 0o644, directory: 0o755, symlink: 0o777 };

async function fill(archive: Pack, inputs: TarInput[], mtime: Date): Promise<void> {
  const add = (header: Parameters<Pack['entry']>[0], bytes: Buffer): Promise<void> =>
    new Promise((resolve, reject) => {
      archive.entry(header, bytes, (error) => (error ? reject(error) : resolve()));
    });
  await withOpen(new FilePartReader(), async (reader) => {
    for (const { path, type = 'file', target = '', content = Buffer.alloc(0), mode } of inputs) {
      const header = { name: path, type, mtime, mode: mode ?? defaultModes[type] };
      if (type === 'directory') archive.entry({ ...header, name: `${path}/` });
      else if (type === 'symlink') archive.entry({ ...header, linkname: target });
      else if (Buffer.isBuffer(content)) await add(header, content);
      else if (content.size <= maxHeldFile) {
        const pieces: Buffer[] = [];
        for await (const piece of reader.read(content, path)) pieces.push(piece);
        await add(header, pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces));
      } else await pipeline(reader.read(content, path), archive.entry({ ...header, size: content.size }));
    }
  });
  archive.finalize();
}

/** Compresses with gzip reproducibly: level 6, without name, time or system. */
async function* gzip(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const deflater = createGzip({ level: 6, chunkSize: 64 * 1024 });
  const feeding = pipeline(source, deflater);
  feeding.catch(() => undefined);
  let offset = 0;
  for await (const chunk of deflater as AsyncIterable<Buffer>) {
    // Byte 9 of the header is the operating system: 255 is "unknown". RFC 1952, 2.3.1.
    if (offset <= 9 && offset + chunk.length > 9) chunk[9 - offset] = 255;
    offset += chunk.length;
    yield chunk;
  }
  await feeding;
}

/** Compresses bytes reproducibly. */
export async function gzipBytes(bytes: Buffer): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of gzip(Readable.from([bytes], { objectMode: false }))) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** A layer in memory. */
export interface Layer {
  /** gzip-compressed tar archive. */
  bytes: Buffer;
  /** Digest of `bytes`. */
  digest: string;
  /** Digest of the archive before compression. */
  diffId: string;
  /** Length of `bytes`. */
  size: number;
}

/** A layer in a file, as it may exceed memory. */
export interface LayerFile extends Omit<Layer, 'bytes'> {
  /** Path of the gzip-compressed tar archive. */
  file: string;
}

/** Builds a layer from the archive of `writeTar`. Throws as its stream. */
export async function layerOf(
  entries: AsyncIterable<TarInput> | Iterable<TarInput>,
  options: WriteTarOptions = {},
): Promise<Layer> {
  const chunks: Buffer[] = [];
  const facts = await compress(entries, options, async (chunk) => void chunks.push(chunk));
  return { bytes: Buffer.concat(chunks), ...facts };
}

/**
 * Builds a layer with the bytes of `layerOf` in a new file, which the caller removes, even after a failure. Throws as
 * `writeTar`, and OpmateError IO and CANCELLED.
 */
export async function writeLayer(
  file: string,
  entries: AsyncIterable<TarInput> | Iterable<TarInput>,
  options: WriteTarOptions & CancelOptions = {},
): Promise<LayerFile> {
  try {
    return await withOpen(open(file, 'wx', 0o600), async (handle) => {
      const facts = await compress(entries, options, async (chunk) => {
        throwIfCancelled(options.signal);
        await handle.writeFile(chunk);
      });
      return { file, ...facts };
    });
  } catch (error) {
    throw systemCode(error) === undefined ? error : writeError(file, error, { file });
  }
}

async function compress(
  entries: AsyncIterable<TarInput> | Iterable<TarInput>,
  options: WriteTarOptions,
  write: (chunk: Buffer) => Promise<void>,
): Promise<Omit<Layer, 'bytes'>> {
  const [plain, packed] = [createHash('sha256'), createHash('sha256')];
  let size = 0;
  const hashed = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of writeTar(entries, options)) {
      plain.update(chunk as Buffer);
      yield chunk as Buffer;
    }
  };
  for await (const chunk of gzip(hashed())) {
    packed.update(chunk);
    size += chunk.length;
    await write(chunk);
  }
  return { digest: `sha256:${packed.digest('hex')}`, diffId: `sha256:${plain.digest('hex')}`, size };
}
