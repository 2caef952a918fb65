import { createReadStream } from 'node:fs';
import { lstat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { type ErrorCode, OpmateError, fileError } from '../core/errors.js';
import { type ArchiveIndex, readArchiveIndex } from './archive-index.js';
import { entriesOf } from './archive-layout.js';
import { ContentRepository, type LocalRepository } from './layout-content.js';
import { refNameAnnotation } from './layout-store.js';
import type { Descriptor } from './types.js';

/** Where the content of a blob lies. */
export interface BlobPlace {
  file: string;
  offset: number;
  size: number;
}

/** One or several archive sets that are open for reading, the base of one among the others. */
export interface OpenedArchive {
  /** Of the set that was named first. */
  index: ArchiveIndex;
  /** The images of that set as index.json lists them: `repository:tag`. */
  entries: readonly Descriptor[];
  /**
   * A repository of the set, e.g. `ns/name`: its tags, and all blobs of all sets. One that the set does not have
   * is empty.
   */
  repository(name: string): LocalRepository;
  /** Where a blob or manifest lies, in whichever set; undefined where none has it. Its content is not checked. */
  locate(digest: string): BlobPlace | undefined;
  /** Blobs that no open set holds. */
  missing(): ReadonlyMap<string, number>;
  close(): Promise<void>;
}

/**
 * Opens archive sets by directory: the one that is wanted, then those that it is based on, where they are at hand.
 * Throws OpmateError USAGE where the first is the base of another, NOT_FOUND for a part that is missing, DIGEST for one whose size is wrong, and what
 * `readArchiveIndex` throws; contents are checked as they are read.
 */
export async function openArchiveSets(directories: readonly string[]): Promise<OpenedArchive> {
  const sets: { directory: string; index: ArchiveIndex }[] = [];
  for (const directory of directories) {
    const index = await readArchiveIndex(directory);
    for (const part of index.parts) {
      const problem = await findPartProblem(directory, part);
      if (problem === undefined) continue;
      const file = path.join(directory, part.file);
      throw new OpmateError(problem.code, `${file}: ${problem.message}`, { file, hint: problem.hint });
    }
    sets.push({ directory, index });
  }
  const [first] = sets;
  if (first === undefined) throw new OpmateError('USAGE', 'no archive is named');
  const later = sets.find(({ index }) => index.base === first.index.id);
  if (later !== undefined) {
    const problem = `${first.directory}: is the base of ${later.directory}, which is named after it`;
    throw new OpmateError('USAGE', problem, { hint: 'name the later archive first: it says what is wanted' });
  }
  return new ArchiveSets(first, sets);
}

/** What is wrong with the file of a part, unless it is there, a file and of the right size. Throws OpmateError IO. */
export async function findPartProblem(
  directory: string,
  part: { file: string; size: number },
): Promise<{ code: ErrorCode; message: string; hint: string } | undefined> {
  const file = path.join(directory, part.file);
  const found = await lstat(file).catch((error: unknown) => {
    if (fileError(file, error).code === 'NOT_FOUND') return undefined;
    throw fileError(file, error, { file });
  });
  if (found === undefined) {
    const hint = 'copy it from where the archive was made: all parts belong beside the index';
    return { code: 'NOT_FOUND', message: 'this part of the archive is missing', hint };
  }
  if (!found.isFile()) {
    const hint = 'an archive is read from the files themselves';
    return { code: 'INVALID', message: 'not a file, or a link to one', hint };
  }
  if (found.size !== part.size) {
    const hint = 'copy it again from where the archive was made';
    return { code: 'DIGEST', message: `has ${found.size} bytes, the index says ${part.size}`, hint };
  }
  return undefined;
}

class ArchiveSets implements OpenedArchive {
  readonly index: ArchiveIndex;
  readonly entries: readonly Descriptor[];
  readonly #directory: string;
  readonly #sets: readonly { directory: string; index: ArchiveIndex }[];

  constructor(
    first: { directory: string; index: ArchiveIndex },
    sets: readonly { directory: string; index: ArchiveIndex }[],
  ) {
    this.index = first.index;
    this.entries = entriesOf(first.index.images);
    this.#directory = first.directory;
    this.#sets = sets;
  }

  repository(name: string): LocalRepository {
    const entries = this.index.images
      .filter(({ repository }) => repository === name)
      .map(({ tag, descriptor: { mediaType, digest, size } }) => ({
        mediaType,
        digest,
        size,
        ...(tag !== undefined && { annotations: { [refNameAnnotation]: tag } }),
      }));
    return new ContentRepository({
      name: `${this.#directory}: ${name}`,
      entries: async () => entries,
      blobSize: async (digest) => this.locate(digest)?.size,
      openBlob: async (digest) => {
        const { file, offset, size } = this.locate(digest) as BlobPlace;
        if (size === 0) return Readable.from([]);
        return createReadStream(file, { start: offset, end: offset + size - 1, highWaterMark: 256 * 1024 });
      },
    });
  }

  locate(digest: string): BlobPlace | undefined {
    for (const { directory, index } of this.#sets) {
      const found = index.blobs.get(digest);
      if (found === undefined) continue;
      const { file } = index.parts[found.part - 1] as { file: string };
      return { file: path.join(directory, file), offset: found.offset, size: found.size };
    }
    return undefined;
  }

  missing(): ReadonlyMap<string, number> {
    return new Map([...this.index.inBase].filter(([digest]) => this.locate(digest) === undefined));
  }

  /** Nothing stays open between reads. */
  async close(): Promise<void> {
    return Promise.resolve();
  }
}
