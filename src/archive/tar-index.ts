import { type FileHandle } from 'node:fs/promises';
import { LimitError, OpmateError, fileError } from '../core/errors.js';
import { readBytes } from '../files/file-region.js';
import { openRegularFile } from '../files/read-file.js';
import { normalizeEntryPath, showName } from './entry-path.js';
import { type TarHeader, TarProblem, type TarSource, readTarHeader } from './tar-entries.js';
import { paddedSize } from './tar-header.js';

/** Position of the content of a file in an uncompressed tar archive. */
export interface TarSlice {
  offset: number;
  size: number;
}

interface TarIndexOptions {
  /** Maximum entries, including links and directories; default: 200,000. */
  maxEntries?: number;
  /** Open file to read, which stays open; the path is then used in messages only. */
  handle?: FileHandle;
}

/**
 * Returns every regular file of an uncompressed tar archive without reading content. Names are normalized as by
 * `normalizeEntryPath`; the last duplicate takes precedence, as when unpacking. Links to a file of the archive
 * resolve to it; others are omitted.
 *
 * Throws OpmateError NOT_FOUND or IO, SYNTAX (no tar archive, damaged or truncated), UNSUPPORTED (compressed or
 * sparse), UNSAFE (names) or LIMIT.
 */
export async function indexTar(path: string, options: TarIndexOptions = {}): Promise<Map<string, TarSlice>> {
  let own: FileHandle | undefined;
  try {
    const handle = options.handle ?? (own = await openRegularFile(path));
    return await new Indexer(handle, path, options.maxEntries ?? 200_000).run();
  } catch (error) {
    throw fileError(path, error);
  } finally {
    await own?.close();
  }
}

class Indexer {
  readonly #handle: FileHandle;
  readonly #path: string;
  readonly #maxEntries: number;
  readonly #files = new Map<string, TarSlice>();
  readonly #links = new Map<string, string>();

  constructor(handle: FileHandle, path: string, maxEntries: number) {
    this.#handle = handle;
    this.#path = path;
    this.#maxEntries = maxEntries;
  }

  async run(): Promise<Map<string, TarSlice>> {
    const { size: total } = await this.#handle.stat();
    let position = 0;
    let start = 0;
    const source: TarSource = {
      read: async (length) => {
        start = position;
        const left = Math.max(total - position, 0);
        const bytes = await readBytes(this.#handle, position, Math.min(length, left));
        position += bytes.length;
        return bytes;
      },
    };
    let entries = 0;
    try {
      for (;;) {
        const header = await readTarHeader(source);
        if (header === undefined) break;
        if (++entries > this.#maxEntries) {
          throw new LimitError(`more than ${this.#maxEntries} entries`, {
            subject: this.#path,
            hint: 'raise the limit with --max-entries if you trust the source',
          });
        }
        const end = position + paddedSize(header.size);
        if (end > total) throw new TarProblem('truncated', 'unexpected end');
        this.#add(header, { offset: position, size: header.size });
        position = end;
      }
    } catch (error) {
      if (!(error instanceof TarProblem)) throw error;
      const problem =
        entries === 0 && error.kind !== 'ambiguous'
          ? 'not a tar archive'
          : `damaged tar archive at byte ${start}${error.message === 'bad header' ? '' : `: ${error.message}`}`;
      throw new OpmateError('SYNTAX', problem, { subject: this.#path, cause: error });
    }
    if (entries === 0 && total > 0)
      throw new OpmateError('SYNTAX', 'not a tar archive', { subject: this.#path });
    this.#checkParents();
    this.#resolveLinks();
    return this.#files;
  }

  #add(header: TarHeader, slice: TarSlice): void {
    const { type, linkName } = header;
    const name = normalizeEntryPath(header.name, this.#path);
    if (type === 'unsupported') {
      throw new OpmateError('UNSUPPORTED', `entry ${showName(name)}: sparse file or unknown type of entry`, {
        subject: this.#path,
      });
    }
    const target = type === 'link' ? normalizeEntryPath(linkName, this.#path) : undefined;
    if (name === '' || name === target) return;
    this.#files.delete(name);
    this.#links.delete(name);
    if (type === 'file') {
      this.#files.set(name, slice);
    } else if (type === 'symlink') {
      const directory = linkName.startsWith('/') ? '' : `${name}/../`;
      this.#links.set(name, normalizeEntryPath(`${directory}${linkName}`, this.#path));
    } else if (target !== undefined) {
      // A hard link keeps the content that the name had then.
      const [file, link] = [this.#files.get(target), this.#links.get(target)];
      if (file !== undefined) this.#files.set(name, file);
      else if (link !== undefined) this.#links.set(name, link);
    }
  }

  /** Rejects entries below a file or link, which are unpacked elsewhere or not at all. */
  #checkParents(): void {
    for (const name of [...this.#files.keys(), ...this.#links.keys()]) {
      for (let slash = name.indexOf('/'); slash >= 0; slash = name.indexOf('/', slash + 1)) {
        const parent = name.slice(0, slash);
        if (!this.#files.has(parent) && !this.#links.has(parent)) continue;
        throw new OpmateError('INVALID', `entry ${showName(name)}: its parent is a file`, {
          subject: this.#path,
        });
      }
    }
  }

  #resolveLinks(): void {
    for (const [name, first] of this.#links) {
      let target: string | undefined = first;
      for (let hops = 0; hops < 16 && target !== undefined && !this.#files.has(target); hops++) {
        target = this.#links.get(target);
      }
      const slice = target === undefined ? undefined : this.#files.get(target);
      if (slice !== undefined) this.#files.set(name, slice);
    }
  }
}
