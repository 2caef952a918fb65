import type { Readable } from 'node:stream';
import { LimitError, OpmateError } from '../core/errors.js';
import { type DecompressOptions, decompress } from './decompress.js';
import { maxPathLength, normalizeEntryPath, showName } from './entry-path.js';
import { ArchiveMeter } from './limits.js';
import { type TarHeader, TarProblem, type TarSource, readTarHeader } from './tar-entries.js';
import { paddedSize } from './tar-header.js';

/** An entry of a tar archive. */
export interface TarEntry extends Omit<TarHeader, 'name'> {
  /** Path `a/b/c` relative to the root, without `.`, `..` or empty parts; never empty. */
  path: string;
  /** Content, to be read at most once and before the next entry. */
  body: AsyncIterable<Buffer>;
}

/**
 * Reads a tar archive, possibly compressed, entry by entry like `readTarHeader`; unread content is skipped. Omits
 * entries for the root itself. Reads `source` to its end.
 *
 * Throws OpmateError UNSAFE (see `normalizeEntryPath`), SYNTAX (no tar archive, damaged or ambiguous), LIMIT (number
 * of entries, names), and as `decompress`.
 */
export async function* readTar(source: Readable, options: DecompressOptions): AsyncGenerator<TarEntry> {
  const { label } = options;
  const meter = options.meter ?? new ArchiveMeter(options.limits);
  const bytes = new ByteReader(decompress(source, { ...options, meter }));
  let last: string | undefined;
  const explain = async (error: unknown): Promise<unknown> => {
    if (!(error instanceof TarProblem)) return error;
    // Content damaged in transfer reads like a damaged archive: the digest, checked at the end, takes precedence.
    const mismatch = await bytes.drain().catch((other: unknown) => other);
    if (mismatch instanceof OpmateError && mismatch.code === 'DIGEST') return mismatch;
    const where = last === undefined ? '' : ` after entry ${showName(last)}`;
    const isNone = last === undefined && error.kind === 'bad header';
    const problem = isNone ? 'not a tar archive' : `damaged tar archive: ${error.message}${where}`;
    return new OpmateError('SYNTAX', problem, { subject: label, cause: error });
  };
  try {
    for (;;) {
      const header = await readTarHeader(bytes);
      if (header === undefined) break;
      meter.countEntry(label);
      const { name, ...entry } = header;
      const { size, linkName } = entry;
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
      if (path !== '') yield { ...entry, path, body: body() };
      await bytes.skip(left + paddedSize(size) - size);
    }
    // Some sources verify their digest at the end.
    await bytes.drain();
  } catch (error) {
    throw await explain(error);
  } finally {
    await bytes.close();
    source.destroy();
  }
}

/** Reads a requested number of bytes from chunks. */
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
    if (!(await this.#fill())) throw new TarProblem('truncated', 'unexpected end');
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
