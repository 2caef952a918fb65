import type { Readable } from 'node:stream';
import { LimitError, OpmateError } from '../core/errors.js';
import { type DecompressOptions, decompress } from './decompress.js';
import { maxPathLength, normalizeEntryPath, showName } from './entry-path.js';
import { ArchiveMeter } from './limits.js';
import { type TarEntryType, TarProblem, type TarSource, readTarHeader } from './tar-entries.js';
import { paddedSize } from './tar-header.js';

/** One entry of a tar archive. */
export interface TarEntry {
  /** `a/b/c`: relative to the root, without `.`, `..`, empty parts; never empty. */
  path: string;
  type: TarEntryType;
  size: number;
  mode: number;
  /** Target of a `symlink` or `link` as it stands there: not checked at all. `''` for others. */
  linkName: string;
  /** The content, to be read before the next entry is asked for, if at all, and once. */
  body: AsyncIterable<Buffer>;
}

/**
 * Reads a tar archive, compressed or not, entry by entry, as `readTarHeader` understands them; what is not read of
 * a body is skipped. Entries for the root itself are left out. `source` is read to its end.
 *
 * Throws OpmateError UNSAFE (see `normalizeEntryPath`), SYNTAX (not a tar archive, damaged, or ambiguous), LIMIT
 * (number of entries, names), and what `decompress` throws.
 */
export async function* readTar(source: Readable, options: DecompressOptions): AsyncGenerator<TarEntry> {
  const { label } = options;
  const meter = options.meter ?? new ArchiveMeter(options.limits);
  const bytes = new ByteReader(decompress(source, { ...options, meter }));
  let last: string | undefined;
  const explain = async (error: unknown): Promise<unknown> => {
    if (!(error instanceof TarProblem)) return error;
    // What arrived damaged reads like a bad archive: then the digest, checked at the end, is what is wrong.
    const mismatch = await bytes.drain().catch((other: unknown) => other);
    if (mismatch instanceof OpmateError && mismatch.code === 'DIGEST') return mismatch;
    if (last === undefined && error.kind === 'bad header') {
      return new OpmateError('SYNTAX', 'not a tar archive', { subject: label, cause: error });
    }
    const where = last === undefined ? '' : ` after entry ${showName(last)}`;
    return new OpmateError('SYNTAX', `damaged tar archive: ${error.message}${where}`, {
      subject: label,
      cause: error,
    });
  };
  try {
    for (;;) {
      const header = await readTarHeader(bytes);
      if (header === undefined) break;
      meter.countEntry(label);
      const { name, type, size, mode, linkName } = header;
      const path = normalizeEntryPath(name, label);
      last = name;
      if (linkName.length > maxPathLength) {
        throw new LimitError(`entry ${showName(path)}: link target longer than ${maxPathLength}`, {
          subject: label,
        });
      }
      let left = size;
      const body = async function* (): AsyncGenerator<Buffer> {
        try {
          while (left > 0) {
            const chunk = await bytes.readSome(left);
            left -= chunk.length;
            yield chunk;
          }
        } catch (error) {
          throw await explain(error);
        }
      };
      if (path !== '') yield { path, type, size, mode, linkName, body: body() };
      await bytes.skip(left + paddedSize(size) - size);
    }
    // Some sources check their digest at the end.
    await bytes.drain();
  } catch (error) {
    throw await explain(error);
  } finally {
    await bytes.close();
    source.destroy();
  }
}

/** Reads as many bytes of chunks as are wanted. */
class ByteReader implements TarSource {
  readonly #chunks: AsyncGenerator<Buffer>;
  #buffered: Buffer = Buffer.alloc(0);

  constructor(chunks: AsyncGenerator<Buffer>) {
    this.#chunks = chunks;
  }

  async read(length: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let missing = length; missing > 0;) {
      if (!(await this.#fill())) break;
      const part = this.#take(missing);
      missing -= part.length;
      parts.push(part);
    }
    return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
  }

  /** Returns between one and `limit` bytes. Throws TarProblem at the end. */
  async readSome(limit: number): Promise<Buffer> {
    if (!(await this.#fill())) throw new TarProblem('truncated', 'it ends early');
    return this.#take(limit);
  }

  async skip(length: number): Promise<void> {
    for (let left = length; left > 0;) left -= (await this.readSome(left)).length;
  }

  async drain(): Promise<void> {
    this.#buffered = Buffer.alloc(0);
    while ((await this.#chunks.next()).done !== true);
  }

  async close(): Promise<void> {
    await this.#chunks.return(undefined);
  }

  async #fill(): Promise<boolean> {
    while (this.#buffered.length === 0) {
      const next = await this.#chunks.next();
      if (next.done === true) return false;
      this.#buffered = next.value;
    }
    return true;
  }

  #take(limit: number): Buffer {
    const part = this.#buffered.subarray(0, limit);
    this.#buffered = this.#buffered.subarray(part.length);
    return part;
  }
}
