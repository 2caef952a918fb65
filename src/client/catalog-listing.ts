import { OpmateError } from '../core/errors.js';
import { structList, readTyped, stringMap, struct } from '../kube/struct.js';
import { readServerJson } from './client-options.js';

/** A catalog in the list of a server. */
export interface ListedCatalog {
  name: string;
  priority: number;
  labels: Record<string, string>;
  /** Digest `sha256:…` of its content. */
  hash: string;
  /** Size of its content in bytes. */
  size: number;
  /** Number of blobs. */
  count: number;
  /** Number of packages. */
  packages: number;
  /** Time of its last change; an ISO date. */
  changedAt: string;
  /** URLs as known to the server; `base` is the URL for a client. */
  urls: { base: string; all: string; metas: string };
}

const listingType = struct({
  catalogs: structList({
    name: 'string',
    priority: 'int32',
    labels: stringMap,
    hash: 'string',
    size: 'int64',
    count: 'int64',
    packages: 'int64',
    changedAt: 'string',
    urls: struct({ base: 'string', all: 'string', metas: 'string' }),
  }),
});

/** Reads the list of catalogs of a server. Throws OpmateError SYNTAX or INVALID that starts with `label`. */
export function readListing(bytes: Buffer, label: string): ListedCatalog[] {
  return readServerJson(bytes, label, (value) => {
    const { catalogs } = readTyped(value, listingType);
    if (catalogs === null) throw new OpmateError('INVALID', 'not a list of catalogs');
    return catalogs.map((catalog) => ({
      ...catalog,
      labels: catalog.labels ?? {},
      size: Number(catalog.size),
      count: Number(catalog.count),
      packages: Number(catalog.packages),
    }));
  });
}
