import { createReadStream, existsSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { lstatIfPresent } from '../../files/file-status.js';
import { type ErrorCode, OpmateError, fileError } from '../../core/errors.js';
import { type ArchiveIndex, type ArchiveProof, readArchiveIndex } from './archive-index.js';
import { getEntries, keyOfParts, stagedName } from './archive-layout.js';
import { ContentRepository, type LocalRepository } from '../layout/layout-content.js';
import { refNameAnnotation } from '../layout/layout-store.js';
import type { Descriptor } from '../image/types.js';

/** Where the content of a blob lies. */
interface BlobPlace {
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
 * `proof` is about the first, whose id covers all that it needs of the others. Throws OpmateError USAGE where the first
 * is the base of another, NOT_FOUND for a part that is missing, DIGEST for one whose size is wrong, and what
 * `readArchiveIndex` throws; contents are checked as they are read.
 */
export async function openArchiveSets(
  directories: readonly string[],
  proof: ArchiveProof = {},
): Promise<OpenedArchive> {
  const sets: OpenedSet[] = [];
  for (const directory of directories) {
    const index = await readArchiveIndex(directory, sets.length === 0 ? proof : {});
    const files = await findPartFiles(directory, index);
    for (const [i, part] of index.parts.entries()) {
      const file = files[i] as string;
      const problem = await findPartProblem(file, part);
      if (problem === undefined) continue;
      throw new OpmateError(problem.code, problem.message, { subject: file, file, hint: problem.hint });
    }
    sets.push({ directory, index, files });
  }
  const [first] = sets;
  if (first === undefined) throw new OpmateError('USAGE', 'no archive is named');
  const later = sets.find(({ index }) => index.base === first.index.id);
  if (later !== undefined) {
    const problem = `${first.directory}: is the base of ${later.directory}, which is named after it`;
    throw new OpmateError('USAGE', problem, {
      hint: 'specify the later archive first: it defines the images to mirror',
    });
  }
  return new ArchiveSets(first, sets);
}

/** A set that is open, and the files of its parts. */
interface OpenedSet {
  directory: string;
  index: ArchiveIndex;
  files: readonly string[];
}

/**
 * The files of the parts of a set: under their staged names where the run that replaced an earlier set has not moved
 * them yet, or was ended before it could. Whether they are there is not said.
 */
export async function findPartFiles(directory: string, index: ArchiveIndex): Promise<string[]> {
  const key = keyOfParts(index);
  return Promise.all(
    index.parts.map(async ({ file, size }, i) => {
      const staged = path.join(directory, stagedName(i + 1, key));
      const stats = await lstatIfPresent(staged);
      return stats?.isFile() && stats.size === size ? staged : path.join(directory, file);
    }),
  );
}

/** What is wrong with the file of a part, unless it is there, a file and of the right size. Throws OpmateError IO. */
export async function findPartProblem(
  file: string,
  part: { size: number },
): Promise<{ code: ErrorCode; message: string; hint: string } | undefined> {
  const stats = await lstat(file).catch((error: unknown) => {
    if (fileError(file, error).code === 'NOT_FOUND') return undefined;
    throw fileError(file, error, { file });
  });
  if (stats === undefined) {
    const hint = 'copy it from the original archive: all parts must be next to the index';
    return { code: 'NOT_FOUND', message: 'this part of the archive is missing', hint };
  }
  if (!stats.isFile()) {
    const hint = 'replace it with a regular file';
    return { code: 'INVALID', message: 'not a file, or a link to one', hint };
  }
  if (stats.size !== part.size) {
    const hint = 'copy it again from the original archive';
    return { code: 'DIGEST', message: `has ${stats.size} bytes, the index says ${part.size}`, hint };
  }
  return undefined;
}

class ArchiveSets implements OpenedArchive {
  readonly index: ArchiveIndex;
  readonly entries: readonly Descriptor[];
  readonly #directory: string;
  readonly #sets: readonly OpenedSet[];

  constructor(first: OpenedSet, sets: readonly OpenedSet[]) {
    this.index = first.index;
    this.entries = getEntries(first.index.images);
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
    for (const { directory, index, files } of this.#sets) {
      const blob = index.blobs.get(digest);
      if (blob === undefined) continue;
      const own = path.join(directory, index.parts[blob.part - 1]?.file as string);
      const known = files[blob.part - 1] as string;
      // A staged part may have come to its place meanwhile.
      const file = known === own || existsSync(known) ? known : own;
      return { file, offset: blob.offset, size: blob.size };
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
