import { createReadStream, existsSync } from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { lstatIfPresent } from '../../files/file-status.js';
import { type ErrorCode, OpmateError } from '../../core/errors.js';
import { type ArchiveIndex, type ArchiveProof, readArchiveIndex } from './archive-index.js';
import { getEntries, toPlanKey, stagedName } from './archive-layout.js';
import { type LocalRepository, createContentRepository } from '../layout/layout-content.js';
import { refNameAnnotation } from '../layout/layout-store.js';
import type { Descriptor } from '../image/types.js';

/** Location of the content of a blob. */
interface BlobPlace {
  file: string;
  offset: number;
  size: number;
}

/** Open archive sets: the first one and, if available, its bases. */
export interface OpenedArchive {
  /** Index of the first set. */
  index: ArchiveIndex;
  /** Images of the first set as index.json lists them: `repository:tag`. */
  entries: readonly Descriptor[];
  /** Returns a repository such as `ns/name`: tags of the first set and blobs of all sets; empty if unknown. */
  repository(name: string): LocalRepository;
  /** Returns the location of a blob or manifest in any set; undefined if missing. Its content is not verified. */
  locate(digest: string): BlobPlace | undefined;
  /** Returns the sizes of blobs of a base that is not open, by digest. */
  missing(): ReadonlyMap<string, number>;
  close(): Promise<void>;
}

/**
 * Opens archive sets by directory: the one to read, then its bases. `proof` is that of the first, whose ID covers the
 * content needed from the others. Throws OpmateError USAGE if the first is the base of another, NOT_FOUND for a missing
 * part, DIGEST for one of wrong size, and what `readArchiveIndex` throws. Contents are verified when read.
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
      throw new OpmateError(problem.code, problem.message, { about: file, hint: problem.hint });
    }
    sets.push({ directory, index, files });
  }
  const [first] = sets;
  if (first === undefined) throw new OpmateError('USAGE', 'missing archive');
  const later = sets.find(({ index }) => index.base === first.index.id);
  if (later !== undefined) {
    throw new OpmateError('USAGE', `base of ${later.directory}, which must precede it`, {
      subject: first.directory,
      hint: 'specify the later archive first: it defines the images to mirror',
    });
  }
  return openSets(first, sets);
}

interface OpenedSet {
  directory: string;
  index: ArchiveIndex;
  /** Files of its parts. */
  files: readonly string[];
}

/** Returns the error for configured content that an archive does not have. */
export function notInArchive(subject: string): OpmateError {
  const hint = 'mirror to disk with this configuration';
  return new OpmateError('NOT_FOUND', 'not in the archive', { subject, hint });
}

/** Returns the files of the parts of a set, which are staged while the set replaces another. They may be missing. */
export async function findPartFiles(directory: string, index: ArchiveIndex): Promise<string[]> {
  const key = toPlanKey(index);
  return Promise.all(
    index.parts.map(async ({ file, size }, i) => {
      const staged = path.join(directory, stagedName(i + 1, key));
      const stats = await lstatIfPresent(staged);
      return stats?.isFile() && stats.size === size ? staged : path.join(directory, file);
    }),
  );
}

/** Returns the problem of a part that is missing, no file, or of wrong size. Throws OpmateError IO. */
export async function findPartProblem(
  file: string,
  part: { size: number },
): Promise<{ code: ErrorCode; message: string; hint: string } | undefined> {
  const stats = await lstatIfPresent(file);
  if (stats === undefined) {
    const hint = 'copy it from the original archive: all parts must be next to the index';
    return { code: 'NOT_FOUND', message: 'part of the archive not found', hint };
  }
  if (!stats.isFile()) {
    const hint = 'replace it with a regular file';
    return { code: 'INVALID', message: 'not a regular file', hint };
  }
  if (stats.size !== part.size) {
    const hint = 'copy it again from the original archive';
    return { code: 'DIGEST', message: `expected ${part.size} bytes, got ${stats.size}`, hint };
  }
  return undefined;
}

function openSets({ directory, index }: OpenedSet, sets: readonly OpenedSet[]): OpenedArchive {
  function locate(digest: string): BlobPlace | undefined {
    for (const { directory, index, files } of sets) {
      const blob = index.blobs.get(digest);
      if (blob === undefined) continue;
      const final = path.join(directory, index.parts[blob.part - 1]?.file as string);
      const known = files[blob.part - 1] as string;
      // A staged part may have been moved to its place meanwhile.
      const file = known === final || existsSync(known) ? known : final;
      return { file, offset: blob.offset, size: blob.size };
    }
    return undefined;
  }
  return {
    index,
    entries: getEntries(index.images),
    repository(name) {
      const entries = index.images
        .filter(({ repository }) => repository === name)
        .map(({ tag, descriptor: { mediaType, digest, size } }) => ({
          mediaType,
          digest,
          size,
          ...(tag !== undefined && { annotations: { [refNameAnnotation]: tag } }),
        }));
      return createContentRepository({
        name: `${directory}: ${name}`,
        placeName: (digest) => `${locate(digest)?.file ?? directory}: ${name}`,
        entries: async () => entries,
        blobSize: async (digest) => locate(digest)?.size,
        openBlob: async (digest) => {
          const { file, offset, size } = locate(digest) as BlobPlace;
          if (size === 0) return Readable.from([]);
          return createReadStream(file, { start: offset, end: offset + size - 1, highWaterMark: 256 * 1024 });
        },
      });
    },
    locate,
    missing: () => new Map([...index.inBase].filter(([digest]) => locate(digest) === undefined)),
    // Files are open only while they are read.
    close: async () => undefined,
  };
}
