import { type FileHandle, constants, open, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, fileError, throwFileError, throwIfCancelled } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import {
  type ArchiveIndex,
  maxArchiveIndexBytes,
  parseArchiveIndex,
  readPlainFile,
} from './archive-index.js';
import { type PlacedBlob, blobHeader, partialName, planPattern, stagedName } from './archive-layout.js';
import { readBytes } from '../../files/file-region.js';

/**
 * Reads the progress of unfinished archive sets in a directory, without writing: the planned index, whose parts have no
 * sums yet, and the digests of blobs and manifests with a tar header, which is written last. Contents are not verified.
 * Damaged indexes are ignored, as by the next run. Throws OpmateError NOT_FOUND and IO.
 */
export async function readUnfinishedArchives(
  directory: string,
  { signal }: CancelOptions = {},
): Promise<{ index: ArchiveIndex; written: ReadonlySet<string> }[]> {
  const names = await readdir(directory).catch(throwFileError(directory));
  const archives: { index: ArchiveIndex; written: ReadonlySet<string> }[] = [];
  for (const name of sortedByBytes(names)) {
    const key = planPattern.exec(name)?.[1];
    const index = key === undefined ? undefined : await readPlan(path.join(directory, name));
    if (key === undefined || index === undefined) continue;
    const written = new Set<string>();
    const blobs: PlacedBlob[][] = index.parts.map(() => []);
    for (const [digest, { size, part, offset }] of index.blobs)
      blobs[part - 1]?.push({ digest, size, offset });
    for (const [i, part] of index.parts.entries()) {
      throwIfCancelled(signal);
      // If all parts are complete, some may have been renamed already.
      const named = part.sha256 === '' ? [] : [stagedName(i + 1, key), part.file];
      const names = [partialName(i + 1, key), ...named];
      for (const digest of await readHeaders(directory, names, part.size, blobs[i] ?? []))
        written.add(digest);
    }
    archives.push({ index, written });
  }
  return archives;
}

async function readPlan(file: string): Promise<ArchiveIndex | undefined> {
  try {
    return parseArchiveIndex(await readPlainFile(file, maxArchiveIndexBytes), file, { unfinished: true });
  } catch (error) {
    if (!(error instanceof OpmateError) || error.code === 'IO') throw error;
    return undefined;
  }
}

/** Returns the digests of the blobs of a part whose tar headers are present. */
async function readHeaders(
  directory: string,
  names: readonly string[],
  size: number,
  blobs: readonly PlacedBlob[],
): Promise<string[]> {
  for (const name of names) {
    const file = path.join(directory, name);
    let handle: FileHandle | undefined;
    try {
      handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      const stats = await handle.stat();
      if (!stats.isFile() || stats.size !== size) continue;
      const written: string[] = [];
      for (const blob of blobs) {
        const header = blobHeader(blob);
        const bytes = await readBytes(handle, blob.offset - header.length, header.length);
        if (bytes.equals(header)) written.push(blob.digest);
      }
      return written;
    } catch (error) {
      const failure = fileError(file, error, { file });
      if (failure.code !== 'NOT_FOUND') throw failure;
    } finally {
      await handle?.close();
    }
  }
  return [];
}
