import { normalizeEntryPath } from '../archive/entry-path.js';
import { quoteGo } from '../document/go-json.js';
import type { JsonObject } from '../document/json.js';
import { OpmateError, redactUrls } from '../core/errors.js';
import { type Reference, formatReference, parseReference, withoutCredentials } from '../core/reference.js';

/**
 * A location of files, bundles or catalogs. Paths from documents are absolute; paths from the command line are
 * unchanged.
 */
export type Place =
  | DirectoryPlace
  | DatabasePlace
  | ArchivePlace
  | ImagePlace
  | ArtifactPlace
  | GitPlace
  | HttpPlace
  | ConfigMapPlace
  | ConfigMapsPlace
  | ServedPlace;

/** A directory; opened as a catalog, it may also be a sqlite index file. */
export interface DirectoryPlace {
  kind: 'directory';
  path: string;
  /** Package to read; blobs of other packages may be included. Default: all packages. */
  package?: string;
}

/** A sqlite index file. */
export interface DatabasePlace {
  kind: 'database';
  path: string;
}

/** A tar archive on disk, optionally compressed. */
export interface ArchivePlace {
  kind: 'archive';
  path: string;
}

/** An image in a registry, layout or image archive; see `parseReference`. */
export interface ImagePlace extends PlaceAccess {
  kind: 'image';
  ref: string;
  /** Certificate authorities of the registry, PEM. */
  certificateData?: string;
}

/** An OCI artifact whose layers are archives or files. */
export interface ArtifactPlace extends PlaceWithin {
  kind: 'artifact';
  ref: string;
}

/** A git repository at a branch, tag or commit; default: the default branch. */
export interface GitPlace extends PlaceAccess, PlaceWithin {
  kind: 'git';
  repository: string;
  branch?: string;
  tag?: string;
  commit?: string;
  /** Branch, tag or commit, resolved by the repository; must not be ambiguous. */
  revision?: string;
}

/** A tar archive at a URL, optionally compressed. */
export interface HttpPlace extends PlaceAccess, PlaceWithin {
  kind: 'http';
  url: string;
  /** Digest of the archive: `sha256:…`. */
  checksum?: string;
  /** Allows plain HTTP. */
  insecure?: boolean;
}

/** The data of one ConfigMap: files, or manifests in the layout of OLM's `configmap` sources. */
export interface ConfigMapPlace {
  kind: 'configMap';
  name: string;
  data: JsonObject;
  binaryData?: JsonObject;
}

/** ConfigMaps in a manifest file; their data and binaryData become files below `path`. */
export interface ConfigMapsPlace {
  kind: 'configMaps';
  file: string;
  configMaps?: readonly { name: string; path?: string }[];
}

/** A catalog served over HTTP by catalogd or opmate; `url` is its base URL, e.g. `https://HOST/catalogs/NAME`. */
export interface ServedPlace {
  kind: 'served';
  url: string;
  /** Package to read; blobs of other packages may be included. Default: all packages. */
  package?: string;
  /** Allows plain HTTP. */
  insecure?: boolean;
}

/** Access settings of a remote place. */
interface PlaceAccess {
  credentials?: SourceCredentials;
  insecureSkipTlsVerify?: boolean;
}

interface PlaceWithin {
  /** Directory of the files within the place; default: its root. */
  directory?: string;
}

/** Credentials of one place. Never printed or passed as program arguments. */
export type SourceCredentials =
  | { type: 'basic'; username: string; password: string }
  | { type: 'ssh'; privateKey: string; knownHosts?: string }
  /** The content of a `.dockerconfigjson` key. */
  | { type: 'docker'; config: string };

/** Places of catalogs that are polled for changes. */
export type CatalogPlace = Exclude<Place, ArchivePlace | ConfigMapsPlace | DatabasePlace>;

/** Places of bundle files. */
export type ContentPlace = Extract<
  Place,
  { kind: 'directory' | 'archive' | 'image' | 'git' | 'http' | 'configMaps' }
>;

/** Reports whether a place is local and its only state is its files. */
export function isLocal({ kind }: Place): boolean {
  return kind === 'directory' || kind === 'configMaps';
}

/** Reports whether a place is pinned to immutable content. */
export function isPinned(place: Place): boolean {
  switch (place.kind) {
    case 'image':
    case 'artifact': {
      const reference = parseReference(place.ref);
      return reference.transport === 'docker' && reference.digest !== undefined;
    }
    case 'git':
      return place.commit !== undefined || isCommit(place.revision ?? '');
    case 'http':
      return place.checksum !== undefined;
    default:
      return false;
  }
}

/** Formats a place in command-line syntax, without credentials and queries. */
export function formatPlace(place: Place): string {
  switch (place.kind) {
    case 'directory':
    case 'database':
    case 'archive':
      return place.path;
    case 'image':
    case 'artifact':
      return withoutCredentials(place.ref);
    case 'git': {
      const { repository, branch, tag, commit, revision, directory } = place;
      const ref = commit ?? tag ?? branch ?? revision ?? '';
      const fragment = directory === undefined ? ref : `${ref}:${directory}`;
      return `git+${redactUrls(repository)}${fragment === '' ? '' : `#${fragment}`}`;
    }
    case 'http':
    case 'served':
      return formatUrl(new URL(place.url));
    case 'configMap':
      return `configmap/${place.name}`;
    case 'configMaps': {
      const [only, ...more] = place.configMaps ?? [];
      return `configmap:${place.file}${only === undefined || more.length > 0 ? '' : `#${only.name}`}`;
    }
  }
}

/** Formats a URL without its query, which may contain secrets. */
export function formatUrl(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

/** Reports whether a text is a full commit hash. */
export function isCommit(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
}

/** Returns the normalized directory within a repository. Throws OpmateError UNSAFE for a path outside of it. */
export function getDirectory({ repository, directory = '' }: GitPlace): string {
  const subject = `${redactUrls(repository)}: directory`;
  if (directory.startsWith('/'))
    throw new OpmateError('UNSAFE', `${subject} ${quoteGo(directory)}: is absolute`);
  return normalizeEntryPath(directory, subject);
}

/** Returns the reference with a digest instead of its tag. */
export function pinReference(reference: Reference, digest: string): Reference {
  const pinned = { ...reference, digest };
  delete pinned.tag;
  return { ...pinned, text: formatReference(pinned) };
}

/** Returns the error for a URL that contains a user or password. */
export function credentialsInUrl(shown: string): OpmateError {
  return new OpmateError('INVALID', 'URL must not contain credentials', {
    subject: shown,
    hint: 'move them to the auth file, or to a Secret in a file: options.secrets DIRECTORY options.secret NAME',
  });
}
