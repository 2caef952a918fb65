import type { ContentPlace } from '../place.js';
import type { ContentStore } from './content-store.js';

/** A source and the destination of its files. */
export interface PlacedSource {
  /** Name in messages: the source as specified, or its field in a document. */
  name: string;
  source: ContentPlace;
  /** Path relative to the root of the content; `''` or `.` for the root. */
  destination: string;
}

/** The resolved state of a source, sufficient to read the same files again. */
export interface Pin {
  name: string;
  type: ContentPlace['kind'];
  /** Pinned reference: `repo@sha256:…`, `repository@commit`, `url@sha256:…`, `directory`, … */
  ref: string;
  /** Hash of the names and bytes of its files, independent of their origin. */
  content: string;
  /** Directories that `content` covers; undefined for all files. */
  roots?: readonly string[];
  /** Requested source, e.g. `git https://git.example/a.git branch main`; the pin applies to no other. */
  source?: string;
}

export interface ContentOptions {
  /** Rejects sources without digest, commit or checksum. */
  requireDigest?: boolean | undefined;
  /** Pins of a lock; a source that differs is rejected. */
  pins?: readonly Pin[] | undefined;
  /** Paths to read from a single source at the root; default: all. */
  roots?: readonly string[] | undefined;
  /** Store for unpacked content; default: a temporary directory. */
  contentStore?: ContentStore | undefined;
}

/** Files of one or several sources in a read-only directory; close it. */
export interface OpenedContent {
  directory: string;
  /** True if `directory` is the user's source directory, so that findings contain its path. */
  isInPlace: boolean;
  /** One pin per source, in the same order. */
  pins: readonly Pin[];
  /** Destinations of the sources within the directory, sorted; `['']` for a single one at the root. */
  destinations: readonly string[];
  /** Hash of all files at their destinations. */
  content: string;
  /** Throws OpmateError if files read in place have changed since they were hashed. */
  confirm(): Promise<void>;
  close(): Promise<void>;
}
