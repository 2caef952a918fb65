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
    return await readIndex(handle, path, options.maxEntries ?? 200_000);
  } catch (error) {
    throw fileError(path, error);
  } finally {
    await own?.close();
  }
}

async function readIndex(
  handle: FileHandle,
  path: string,
  maxEntries: number,
): Promise<Map<string, TarSlice>> {
  const { size: total } = await handle.stat();
  let position = 0;
  let start = 0;
  const source: TarSource = {
    read: async (length) => {
      start = position;
      const left = Math.max(total - position, 0);
      const bytes = await readBytes(handle, position, Math.min(length, left));
      position += bytes.length;
      return bytes;
    },
  };
  const files = new Map<string, TarSlice>();
  const links = new Map<string, string>();
  let entries = 0;
  try {
    for (;;) {
      const header = await readTarHeader(source);
      if (header === undefined) break;
      if (++entries > maxEntries) {
        throw new LimitError(`more than ${maxEntries} entries`, {
          subject: path,
          hint: 'raise the limit with limits.maxEntries if you trust the source',
        });
      }
      const end = position + paddedSize(header.size);
      if (end > total) throw new TarProblem('truncated', 'unexpected end');
      addEntry(files, links, header, { offset: position, size: header.size }, path);
      position = end;
    }
  } catch (error) {
    if (!(error instanceof TarProblem)) throw error;
    const problem =
      entries === 0 && error.kind !== 'ambiguous'
        ? 'not a tar archive'
        : `damaged tar archive at byte ${start}${error.message === 'bad header' ? '' : `: ${error.message}`}`;
    throw new OpmateError('SYNTAX', problem, { subject: path, cause: error });
  }
  if (entries === 0 && total > 0) throw new OpmateError('SYNTAX', 'not a tar archive', { subject: path });
  refuseEntriesBelowFiles(files, links, path);
  resolveLinks(files, links);
  return files;
}

/** Refuses entries below a file or link, which are unpacked elsewhere or not at all. */
function refuseEntriesBelowFiles(
  files: ReadonlyMap<string, TarSlice>,
  links: ReadonlyMap<string, string>,
  path: string,
): void {
  for (const name of [...files.keys(), ...links.keys()]) {
    for (let slash = name.indexOf('/'); slash >= 0; slash = name.indexOf('/', slash + 1)) {
      const parent = name.slice(0, slash);
      if (!files.has(parent) && !links.has(parent)) continue;
      throw new OpmateError('INVALID', `entry ${showName(name)}: its parent is a file`, { subject: path });
    }
  }
}

/** Adds links to files, which may lead through others. */
function resolveLinks(files: Map<string, TarSlice>, links: ReadonlyMap<string, string>): void {
  for (const [name, first] of links) {
    let target: string | undefined = first;
    for (let hops = 0; hops < 16 && target !== undefined && !files.has(target); hops++)
      target = links.get(target);
    const slice = target === undefined ? undefined : files.get(target);
    if (slice !== undefined) files.set(name, slice);
  }
}

/** Adds an entry to the files or the links of the archive at `path`. */
function addEntry(
  files: Map<string, TarSlice>,
  links: Map<string, string>,
  { name: written, type, linkName }: TarHeader,
  slice: TarSlice,
  path: string,
): void {
  const name = normalizeEntryPath(written, path);
  if (type === 'unsupported') {
    throw new OpmateError('UNSUPPORTED', `entry ${showName(name)}: sparse file or unknown type of entry`, {
      subject: path,
    });
  }
  const target = type === 'link' ? normalizeEntryPath(linkName, path) : undefined;
  if (name === '' || name === target) return;
  files.delete(name);
  links.delete(name);
  if (type === 'file') {
    files.set(name, slice);
  } else if (type === 'symlink') {
    const directory = linkName.startsWith('/') ? '' : `${name}/../`;
    links.set(name, normalizeEntryPath(`${directory}${linkName}`, path));
  } else if (target !== undefined) {
    // A hard link keeps the content that the name had then.
    const [file, link] = [files.get(target), links.get(target)];
    if (file !== undefined) files.set(name, file);
    else if (link !== undefined) links.set(name, link);
  }
}
