import type { CancelOptions } from '../../core/concurrency.js';
import type { Connection, ConnectionOptions } from '../../oci/registry/connection.js';
import type { ContentStore } from './content-store.js';
import type { SourceOptions } from '../source.js';

/** Where files (of a bundle) come from; exactly one place. Local paths are absolute. */
export type ContentSource =
  | { type: 'directory'; path: string }
  /** A tar archive on disk, compressed or not. */
  | { type: 'archive'; path: string }
  /** An image in a registry, layout or archive, as `parseReference` takes it. */
  | ({ type: 'image'; ref: string; certificateData?: string } & SourceAccess)
  | GitSource
  /** A tar archive, compressed or not; its `checksum` is `sha256:…`. */
  | HttpSource
  /** Documents of ConfigMaps: data and binaryData become files below `path`. */
  | { type: 'configMaps'; file: string; configMaps?: readonly { name: string; path?: string }[] };

/** A git repository; the default branch where neither branch, tag nor commit is named. */
export interface GitSource extends SourceAccess {
  type: 'git';
  repository: string;
  branch?: string;
  tag?: string;
  commit?: string;
  /** Which of the three it is, is asked of the repository; one that is ambiguous is refused. */
  revision?: string;
  directory?: string;
}

export interface HttpSource extends SourceAccess {
  type: 'http';
  url: string;
  checksum?: string;
}

export interface SourceAccess {
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
  /** Hash of the files that it gave: names and bytes, wherever they came from. */
  content: string;
  /** The directories that `content` is of, where it is not of all files: what was not asked for was not read. */
  roots?: readonly string[];
  /** What was asked for, as in `git https://git.example/a.git branch main`; a lock is for nothing else. */
  source?: string;
}

/** What a connection of one source has of its own. */
export type ConnectionChanges = Partial<
  Pick<ConnectionOptions, 'authFile' | 'skipTlsVerify' | 'caFile' | 'useHttp'>
>;

export interface ContentOptions extends SourceOptions, CancelOptions {
  /** For programs that are started. */
  environment: Readonly<Record<string, string | undefined>>;
  /** A connection as `connect` gives it, but for these changes; the caller closes it. */
  connectAnew: (changes: ConnectionChanges) => Promise<Connection>;
  /** How other servers than registries are talked to: as these. */
  network?: { allowHttp?: boolean; skipTlsVerify?: boolean; caFile?: string } | undefined;
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
