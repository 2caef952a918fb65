import { normalizeEntryPath } from '../archive/entry-path.js';
import { quoteGo } from '../document/go-json.js';
import type { JsonObject } from '../document/json.js';
import { OpmateError, redact } from '../core/errors.js';
import { type Reference, formatReference, parseReference, withoutCredentials } from '../core/reference.js';

/**
 * Where files, bundles and catalogs are read from. Paths of documents are absolute; those of the command line are as
 * they were written.
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

/** A directory; where it is opened as a catalog, also the file of a sqlite index that has come in its place. */
export interface DirectoryPlace {
  kind: 'directory';
  path: string;
  /** The package whose blobs are wanted; others may come with them. All packages where it is left out. */
  package?: string;
}

/** The file of a sqlite index. */
export interface DatabasePlace {
  kind: 'database';
  path: string;
}

/** A tar archive on disk, compressed or not. */
export interface ArchivePlace {
  kind: 'archive';
  path: string;
}

/** An image in a registry, layout or image archive, as `parseReference` reads it. */
export interface ImagePlace extends PlaceAccess {
  kind: 'image';
  ref: string;
  /** Certificate authorities of its registry, PEM. */
  certificateData?: string;
}

/** An OCI artifact whose layers are archives or files. */
export interface ArtifactPlace extends PlaceWithin {
  kind: 'artifact';
  ref: string;
}

/** A git repository; the default branch where neither branch, tag nor commit is named. */
export interface GitPlace extends PlaceAccess, PlaceWithin {
  kind: 'git';
  repository: string;
  branch?: string;
  tag?: string;
  commit?: string;
  /** A branch, tag or commit, which the repository decides; an ambiguous one is refused. */
  revision?: string;
}

/** A tar archive at a URL, compressed or not. */
export interface HttpPlace extends PlaceAccess, PlaceWithin {
  kind: 'http';
  url: string;
  /** `sha256:…` of the archive. */
  checksum?: string;
  /** Allows plain HTTP. */
  insecure?: boolean;
}

/** The data of one ConfigMap, at hand: files, or manifests as OLM's `configmap` sources hold them. */
export interface ConfigMapPlace {
  kind: 'configMap';
  name: string;
  data: JsonObject;
  binaryData?: JsonObject;
}

/** ConfigMaps in a file of documents; their data and binaryData become files below `path`. */
export interface ConfigMapsPlace {
  kind: 'configMaps';
  file: string;
  configMaps?: readonly { name: string; path?: string }[];
}

/** A catalog that catalogd or opmate serves over HTTP; `url` is its base, e.g. `https://HOST/catalogs/NAME`. */
export interface ServedPlace {
  kind: 'served';
  url: string;
  /** The package whose blobs are wanted; others may come with them. All packages where it is left out. */
  package?: string;
  /** Allows plain HTTP. */
  insecure?: boolean;
}

/** How a place elsewhere is reached. */
interface PlaceAccess {
  credentials?: SourceCredentials;
  insecureSkipTlsVerify?: boolean;
}

interface PlaceWithin {
  /** Directory of the files in there; all of them where it is left out. */
  directory?: string;
}

/** Credentials of one place. Never shown, nor passed as arguments of programs. */
export type SourceCredentials =
  | { type: 'basic'; username: string; password: string }
  | { type: 'ssh'; privateKey: string; knownHosts?: string }
  /** The text of a `.dockerconfigjson`. */
  | { type: 'docker'; config: string };

/** Places that a catalog is kept at, again and again. */
export type CatalogPlace = Exclude<Place, ArchivePlace | ConfigMapsPlace | DatabasePlace>;

/** Places that the files of bundles come from. */
export type ContentPlace = Extract<
  Place,
  { kind: 'directory' | 'archive' | 'image' | 'git' | 'http' | 'configMaps' }
>;

/** Returns whether a place is on this machine and has no state but its files. */
export function isLocal({ kind }: Place): boolean {
  return kind === 'directory' || kind === 'configMaps';
}

/** Returns whether a place names one state of its content, so that it never has to be looked at again. */
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

/** Returns a place as it is written on the command line, without credentials and queries. */
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
      return `git+${redact(repository)}${fragment === '' ? '' : `#${fragment}`}`;
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

/** Returns a URL without its query, which may hold secrets. */
export function formatUrl(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

/** Returns whether a text is a whole commit, not an abbreviated one. */
export function isCommit(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
}

/** Returns the directory of a place in a repository. Throws OpmateError UNSAFE where it would leave that. */
export function getDirectory({ repository, directory = '' }: GitPlace): string {
  const subject = `${redact(repository)}: directory`;
  if (directory.startsWith('/'))
    throw new OpmateError('UNSAFE', `${subject} ${quoteGo(directory)}: is absolute`);
  return normalizeEntryPath(directory, subject);
}

/** Returns the same reference by its digest alone. */
export function pinReference(reference: Reference, digest: string): Reference {
  const pinned = { ...reference, digest };
  delete pinned.tag;
  return { ...pinned, text: formatReference(pinned) };
}

/** Returns the error for a URL with a user or password in it. */
export function credentialsInUrl(shown: string): OpmateError {
  return new OpmateError('INVALID', 'credentials do not belong into a URL', {
    subject: shown,
    hint: 'move them to the auth file, or to a Secret in a file: --secrets DIRECTORY --secret NAME',
  });
}
