import type { ContentPlace } from '../place.js';
import type { ContentStore } from './content-store.js';

/** A source and where its files go. */
export interface PlacedSource {
  /** What messages call it: as the user wrote it, or its field in a document. */
  name: string;
  source: ContentPlace;
  /** Relative to the root of the content; `''` or `.` for the root itself. */
  destination: string;
}

/** What a source was found to be: with it, the same files are read again. */
export interface Pin {
  name: string;
  type: ContentPlace['kind'];
  /** The source pinned: `repo@sha256:…`, `repository@commit`, `url@sha256:…`, `directory`, … */
  ref: string;
  /** Hash of the files that it gave: names and bytes, wherever they came from. */
  content: string;
  /** The directories that `content` is of, where it is not of all files: what was not asked for was not read. */
  roots?: readonly string[];
  /** What was asked for, as in `git https://git.example/a.git branch main`; a lock is for nothing else. */
  source?: string;
}

export interface ContentOptions {
  /** Refuse what names no digest, commit or checksum. */
  requireDigest?: boolean | undefined;
  /** What must be found again (a lock); a source that differs is refused. */
  pins?: readonly Pin[] | undefined;
  /** Paths that are wanted where there is one source, at the root; all of it where left out. */
  roots?: readonly string[] | undefined;
  /** Where unpacked content is kept; in a temporary directory where left out. */
  contentStore?: ContentStore | undefined;
}

/** Files of one or several sources in one directory on disk. Must not be changed; `close` it. */
export interface OpenedContent {
  directory: string;
  /** Whether `directory` is the user's own, so that findings are told by its path. */
  isInPlace: boolean;
  /** One a source, in their order. */
  pins: readonly Pin[];
  /** Where its sources were put within the directory, sorted; only the root for a single one. */
  destinations: readonly string[];
  /** Hash of all files, at their places. */
  content: string;
  /** Throws OpmateError where what was read in place is no longer what the hash is of. */
  confirm(): Promise<void>;
  close(): Promise<void>;
}
