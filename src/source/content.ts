import type { CancelOptions } from '../core/concurrency.js';
import type { SourceOptions } from './source.js';

/** Where files (of a bundle) come from; exactly one place. Local paths are absolute. */
export type ContentSource =
  | { type: 'directory'; path: string }
  /** A tar archive on disk, compressed or not. */
  | { type: 'archive'; path: string }
  /** An image in a registry, layout or archive, as `parseReference` takes it. */
  | ({ type: 'image'; ref: string; certificateData?: string } & Access)
  /** A git repository; the default branch where neither branch, tag nor commit is named. */
  | ({
      type: 'git';
      repository: string;
      branch?: string;
      tag?: string;
      commit?: string;
      /** Which of the three it is, is asked of the repository; one that is ambiguous is refused. */
      revision?: string;
      directory?: string;
    } & Access)
  /** A tar archive, compressed or not. */
  | ({ type: 'http'; url: string; checksum?: string } & Access)
  /** Documents of ConfigMaps: data and binaryData become files below `path`. */
  | { type: 'configMaps'; file: string; configMaps?: readonly { name: string; path?: string }[] };

interface Access {
  credentials?: SourceCredentials;
  insecureSkipTlsVerify?: boolean;
}

/** What a source asks for. Never shown, nor put into arguments of programs. */
export type SourceCredentials =
  | { type: 'basic'; username: string; password: string }
  | { type: 'ssh'; privateKey: string; knownHosts?: string }
  /** The text of a `.dockerconfigjson`. */
  | { type: 'docker'; config: string };

/** A source and where its files go. */
export interface PlacedSource {
  /** What messages call it: as the user wrote it, or its field in a document. */
  name: string;
  source: ContentSource;
  /** Relative to the root of the content; `''` or `.` for the root itself. */
  destination: string;
}

/** What a source was found to be: with it, the same files are read again. */
export interface Pin {
  name: string;
  type: ContentSource['type'];
  /** The source pinned: `repo@sha256:…`, `repository@commit`, `url@sha256:…`, `directory`, … */
  ref: string;
  /** Hash of the files that it gave: names, modes and bytes. */
  content: string;
}

export interface ContentOptions extends SourceOptions, CancelOptions {
  /** For programs that are started. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Refuse what names no digest, commit or checksum. */
  requireDigest?: boolean | undefined;
  /** What must be found again (a lock); a source that differs is refused. */
  pins?: readonly Pin[] | undefined;
  /** Directories of images that are wanted; all of them where left out. */
  roots?: readonly string[] | undefined;
}

/** Files of one or several sources in one directory on disk. Must not be changed; `close` it. */
export interface OpenedContent {
  directory: string;
  /** Whether `directory` is the user's own, so that findings are told by its path. */
  isInPlace: boolean;
  pins: readonly Pin[];
  /** Hash of all files, at their places. */
  content: string;
  close(): Promise<void>;
}
