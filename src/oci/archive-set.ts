/**
 * An archive set: a directory with `mirror_000001.tar`, `mirror_000002.tar` … and the index `mirror_archive.json`,
 * which together hold images by name. Each part is an ordinary uncompressed tar of an OCI layout's files; a blob is
 * never divided. A set may have a base: another set that it needs blobs of.
 */
import type { Readable } from 'node:stream';
import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import type { Logger } from '../core/log.js';
import type { LocalRepository } from './layout-content.js';
import type { Descriptor } from './types.js';

export const archiveIndexName = 'mirror_archive.json';

/** The index of an archive set. */
export interface ArchiveIndex {
  /** `sha256:…` over what the set holds and needs; names it. */
  id: string;
  /** The set whose blobs this one leaves out. */
  base: string | undefined;
  parts: { file: string; size: number; sha256: string }[];
  /** Blobs and manifests that the parts hold, by digest. */
  blobs: ReadonlyMap<string, { size: number; part: number; offset: number }>;
  /** Blobs and manifests that the images need and the base, or its base, holds. */
  inBase: ReadonlyMap<string, number>;
  /** Images by name: `repository:tag`, or `repository@digest` for those without tag. */
  images: readonly { repository: string; tag: string | undefined; descriptor: Descriptor }[];
  /** What the archive was made of: the text of the lock. */
  lock: string;
}

/** An image to be written into an archive set. */
export interface ArchivedImage {
  repository: string;
  tag: string | undefined;
  root: Descriptor;
}

/** A blob or manifest to be written, and how to get it. */
export interface ArchivedBlob {
  descriptor: Descriptor;
  open: () => Promise<Readable> | Readable;
}

export interface WriteArchiveOptions extends CancelOptions {
  /** Most bytes of a part, headers and padding included. */
  partBytes: number;
  /** Refuses a blob that alone is above `partBytes`, which else gets a part of its own with a warning. */
  strict?: boolean | undefined;
  /** The set, by its index, whose blobs are left out. */
  base?: ArchiveIndex | undefined;
  lock: string;
  concurrency?: number | undefined;
  logger?: Logger | undefined;
}

export interface WrittenArchive {
  index: ArchiveIndex;
  /** Bytes that were fetched in this run, and those that an interrupted run had already. */
  fetchedBytes: number;
  keptBytes: number;
}

/**
 * Writes an archive set into a directory, replacing one that is there when the new one is whole and on disk.
 * Equal content makes equal bytes. What an interrupted run has completed, blob by blob, is checked and kept.
 * Throws OpmateError: IO before anything is fetched where the disk is too small; LIMIT with `strict`.
 */
export function writeArchiveSet(
  directory: string,
  images: readonly ArchivedImage[],
  blobs: readonly ArchivedBlob[],
  options: WriteArchiveOptions,
): Promise<WrittenArchive> {
  throw new OpmateError('INTERNAL', `${directory}: not built yet`, { cause: [images, blobs, options] });
}

/** One or several archive sets that are open for reading, the base of one among the others. */
export interface OpenedArchive {
  /** Of the set that was named first. */
  index: ArchiveIndex;
  /** A repository of the set, e.g. `ns/name`; its blobs are those of all sets. */
  repository(name: string): LocalRepository;
  /** Blobs that no open set holds. */
  missing(): ReadonlyMap<string, number>;
  close(): Promise<void>;
}

/**
 * Opens archive sets by directory: the one that is wanted, then those that it is based on, where they are at hand.
 * Throws OpmateError NOT_FOUND for a part that is missing, DIGEST for one whose size is wrong; contents are checked
 * as they are read.
 */
export function openArchiveSets(directories: readonly string[]): Promise<OpenedArchive> {
  throw new OpmateError('INTERNAL', `${directories.join()}: not built yet`);
}

/** Reads the index of an archive set from its directory or its own file. Throws OpmateError. */
export function readArchiveIndex(place: string): Promise<ArchiveIndex> {
  throw new OpmateError('INTERNAL', `${place}: not built yet`);
}

/** A fault of an archive set. */
export interface ArchiveFault {
  /** File of the part, or of the index. */
  file: string;
  /** The blob that is damaged, where one is. */
  digest?: string | undefined;
  message: string;
}

/** Reads every byte of an archive set and reports all that is damaged, missing or should not be there. */
export function verifyArchiveSet(
  directory: string,
  options: CancelOptions & { logger?: Logger },
): Promise<ArchiveFault[]> {
  throw new OpmateError('INTERNAL', `${directory}: not built yet`, { cause: options });
}
