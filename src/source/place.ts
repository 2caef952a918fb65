import type { JsonObject } from '../document/json.js';
import type { CatalogSource, SourceOptions } from './source.js';

/**
 * Where a catalog comes from, again and again: it can be asked cheaply which state it is in, and that state be
 * opened.
 */
export type CatalogOrigin =
  /** An image of a catalog or index, in a registry, layout or archive; paths are absolute. */
  | { type: 'Image'; ref: string }
  /** An OCI artifact whose layers are archives or files of a catalog. */
  | ({ type: 'Artifact'; ref: string } & WithinOrigin)
  /** A catalog directory or a sqlite index; the path is absolute. */
  | { type: 'Directory'; path: string }
  /** A git repository; the default branch where nothing is named. */
  | ({ type: 'Git'; repository: string; branch?: string; tag?: string; commit?: string } & WithinOrigin)
  /** A tar archive, compressed or not; over plain HTTP only where `insecure` is true. */
  | ({ type: 'HTTP'; url: string; insecure?: boolean } & WithinOrigin)
  /** The data of a ConfigMap: catalog files, or manifests as OLM's `configmap` sources hold them. */
  | { type: 'ConfigMap'; name: string; data: JsonObject; binaryData?: JsonObject };

export interface WithinOrigin {
  /** Directory of the catalog in there; all of it where it is left out. */
  directory?: string;
}

/** A state that an origin was seen in; kept from one look to the next, and over restarts. */
export interface OriginState {
  /** Two states of one origin with the same id have the same content. */
  id: string;
  /** The origin, pinned to this state, as it is shown. */
  ref: string;
  /** What the next look compares with. */
  validator?: string | undefined;
}

/** What a look at an origin has found. */
export interface FoundOrigin {
  state: OriginState;
  /** Whether the id alone says what the content is, for everyone and for ever. */
  isImmutable: boolean;
  /** Opens the catalog in this state. Throws OpmateError. */
  open(): Promise<CatalogSource>;
  /** Whether what was read is of this state, where it could have changed under the reader. */
  confirm?(): Promise<boolean>;
  /** Removes what the look has downloaded. */
  close?(): Promise<void>;
}

export interface OriginOptions extends SourceOptions {
  /** For programs that are started: paths, proxies and agents are taken from it, nothing else. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Allows archives over plain HTTP from everywhere. */
  network?: { allowHttp?: boolean } | undefined;
}
