import path from 'node:path';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { FilePart } from '../../files/file-parts.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import type { IndexedPackage } from './catalog-content.js';

/** A file of a cache; `path` is its place in the image. */
export interface CacheFile extends FilePart {
  path: string;
}

/** Maximum length of a file name in bytes. */
const maxNameBytes = 255;

/** A bundle in a channel. */
interface BundlePlace {
  channelName: string;
  entry: ChannelEntry;
  /** Name of its file. */
  name: string;
}

/** Returns the places of the bundles of a package, with the names of their files. */
export function listPlaces({ name: owner, channels }: IndexedPackage): BundlePlace[] {
  return channels.flatMap(({ name: channelName, entries }) =>
    entries.map((entry) => ({ channelName, entry, name: `${owner}_${channelName}_${entry.name}.json` })),
  );
}

/** Throws OpmateError INVALID for names that are no file names, or equal ones: names may have underscores. */
export function requireFileNames(packages: readonly IndexedPackage[]): void {
  const owners = new Map<string, string>();
  for (const owner of packages) {
    for (const { channelName, entry, name } of listPlaces(owner)) {
      const place = `package ${quoteGo(owner.name)}, channel ${quoteGo(channelName)}, bundle ${quoteGo(entry.name)}`;
      checkName(name, place);
      const other = owners.get(name);
      if (other !== undefined) throw new OpmateError('INVALID', `${place}: same cache file name as ${other}`);
      owners.set(name, place);
    }
  }
}

function checkName(name: string, place: string): void {
  if (!/[/\0]/.test(name) && Buffer.byteLength(name) <= maxNameBytes) return;
  throw new OpmateError('INVALID', `${place}: names do not form a valid file name`, {
    hint: 'build the image without options.cache',
  });
}

/** Valid names of blob directories. (Source: meta_key.go of operator-registry.) */
const keyPattern = /^[a-zA-Z0-9][a-zA-Z0-9._-]*$/;

/** Returns the directory of the blobs of a schema and package. Throws OpmateError INVALID for names that `opm` refuses. */
export function getBlobDirectory({ schema, package: owner }: { schema: string; package: string }): string {
  if (!keyPattern.test(schema) || (owner !== '' && !keyPattern.test(owner))) {
    const place = `${quoteGo(schema)}${owner === '' ? '' : ` of package ${quoteGo(owner)}`}`;
    throw new OpmateError('INVALID', `schema ${place}: not supported by opm`, {
      hint: 'use letters, digits, dots, underscores and hyphens in schema and package',
    });
  }
  return path.posix.join('cache/metas', schema, owner);
}
