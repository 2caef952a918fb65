import type { Readable } from 'node:stream';
import type { Header } from 'tar-stream';
import { LimitError, OpmateError, messageOf } from '../core/errors.js';
import { type DecompressOptions, decompress } from './decompress.js';
import { maxPathLength, normalizeEntryPath, showName } from './entry-path.js';
import { ArchiveMeter } from './limits.js';

/** What an entry is. `other` is anything that has no content to read: devices, pipes, sockets. */
export type TarEntryType = 'file' | 'directory' | 'symlink' | 'link' | 'other' | 'unsupported';

/** One entry of a tar archive. */
export interface TarEntry {
  /** `a/b/c`: relative to the root, without `.`, `..`, empty parts; never empty. */
  path: string;
  /** `unsupported`: a sparse file, or of a type unknown here. */
  type: TarEntryType;
  size: number;
  mode: number;
  /** Target of a `symlink` or `link` as it stands there: not checked at all. `''` for others. */
  linkName: string;
  /** The content, to be read before the next entry is asked for, if at all, and once. */
  body: AsyncIterable<Buffer>;
}

/**
 * Reads a tar archive, compressed or not, entry by entry; what is not read of a body is skipped. Entries
 * for the root itself are left out, and so are PAX global headers. `source` is read to its end.
 *
 * Throws OpmateError UNSAFE (see `normalizeEntryPath`), SYNTAX (not a tar archive, or damaged), LIMIT
 * (number of entries, names), and what `decompress` throws.
 */
export async function* readTar(source: Readable, options: DecompressOptions): AsyncGenerator<TarEntry> {
  const { label } = options;
  const meter = options.meter ?? new ArchiveMeter(options.limits);
  const tar = await import('tar-stream').catch((error: unknown) => {
    source.destroy();
    throw error;
  });
  // Archives from before POSIX have no magic; the declared options leave this one out.
  const extract = tar.extract({ allowUnknownFormat: true } as Parameters<typeof tar.extract>[0]);
  // tar-stream applies the records of a PAX global header to later entries; no other reader of images does.
  Object.defineProperty(extract, '_paxGlobal', { get: () => null, set: () => undefined });
  let failure: { error: unknown } | undefined;
  let wake: () => void = () => undefined;
  const drained = (): Promise<void> =>
    new Promise((resolve) => {
      wake = resolve;
    });
  extract.on('drain', () => wake());
  extract.on('close', () => wake());
  const feed = async (): Promise<void> => {
    for await (const chunk of decompress(source, { ...options, meter })) {
      if (!extract.write(chunk)) await drained();
      if (extract.destroyed) return;
    }
    extract.end(undefined);
  };
  const feeding = feed().catch((error: unknown) => {
    failure ??= { error };
    extract.destroy(error instanceof Error ? error : new Error(messageOf(error)));
  });
  let last: string | undefined;
  const explain = (error: unknown): unknown => {
    if (failure !== undefined) return failure.error;
    if (error instanceof OpmateError) return error;
    const message = messageOf(error);
    const early = /Unexpected end|closed/.test(message);
    const oversized = message === 'Header exceeds max size';
    if (last === undefined && !early && !oversized) {
      return new OpmateError('SYNTAX', `${label}: not a tar archive`, { cause: error });
    }
    const problem = early ? 'it ends early' : oversized ? 'oversized header' : 'bad header';
    const where = last === undefined ? '' : ` after entry ${showName(last)}`;
    return new OpmateError('SYNTAX', `${label}: damaged tar archive: ${problem}${where}`, { cause: error });
  };
  try {
    for await (const stream of extract) {
      meter.countEntry(label);
      const { header } = stream;
      const pax = (header.pax ?? {}) as Record<string, string>;
      const path = normalizeEntryPath(pax['GNU.sparse.name'] ?? header.name, label);
      last = header.name;
      // Null where there is none, whatever its type says.
      const linkName = (header.linkname as string | null) ?? '';
      if (linkName.length > maxPathLength) {
        throw new LimitError(`${label}: entry ${showName(path)}: link target longer than ${maxPathLength}`);
      }
      const sparse = Object.keys(pax).some((key) => key.startsWith('GNU.sparse.'));
      const type = sparse ? 'unsupported' : typeOf(header);
      let used = false;
      const body = async function* (): AsyncGenerator<Buffer> {
        used = true;
        // tar-stream never ends the body of a directory that claims a size.
        if (type === 'directory') return;
        try {
          // Not `for await`: leaving that early would destroy the stream, and the archive with it.
          const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
          for (let next = await chunks.next(); next.done !== true; next = await chunks.next())
            yield next.value;
        } catch (error) {
          throw explain(error);
        }
      };
      const { mode } = header;
      const size = type === 'directory' ? 0 : header.size;
      if (path !== '') yield { path, type, size, mode, linkName, body: body() };
      if (!used || !stream.destroyed) stream.resume();
    }
    await feeding;
    if (failure !== undefined) throw failure.error;
  } catch (error) {
    throw explain(error);
  } finally {
    extract.destroy();
    source.destroy();
  }
}

function typeOf(header: Header): TarEntryType {
  switch (header.type) {
    case 'file':
    case 'contiguous-file':
      // How archives from before POSIX tell a directory.
      return header.name.endsWith('/') ? 'directory' : 'file';
    case 'directory':
    case 'symlink':
    case 'link':
      return header.type;
    case 'character-device':
    case 'block-device':
    case 'fifo':
      return 'other';
    default:
      return 'unsupported';
  }
}
