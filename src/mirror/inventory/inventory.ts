import { computeDigest, isDigest } from '../../core/digest.js';
import { LimitError, throwFileError } from '../../core/errors.js';
import { pushTo } from '../../core/groups.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { decodeFile, openJsonFile } from '../../document/document.js';
import { type Field, quoteShort } from '../../document/field.js';
import { readRegularFile } from '../../files/read-file.js';
import type { ArchiveBase } from '../../oci/archive-set/archive-index.js';

import { maxManifestBytes } from '../../oci/image/types.js';
import { isRepositoryName, isTag } from '../../oci/registry/registry-names.js';

/** Content of a registry, which archives for it omit. Equal content has equal bytes. */
export interface Inventory {
  /** `docker://REGISTRY[/PATH]` as the user wrote it. */
  registry: string;
  /** By path in the registry. */
  repositories: ReadonlyMap<string, InventoryRepository>;
  /** Sizes of manifests by digest. */
  manifests: ReadonlyMap<string, number>;
  /** Sizes of blobs by digest. */
  blobs: ReadonlyMap<string, number>;
}

/** Content of a repository. */
export interface InventoryRepository {
  /** Digests by tag. */
  tags: ReadonlyMap<string, string>;
  /** Digests of manifests, including untagged ones. */
  manifests: ReadonlySet<string>;
  blobs: ReadonlySet<string>;
}

/** Maximum bytes of an inventory file. */
const maxInventoryBytes = 256 * 1024 * 1024;
/** Maximum number of repositories. */
export const maxRepositories = 100_000;
/** Maximum number of manifests, blobs and tags of all repositories. */
export const maxInventoryItems = 2_000_000;
const formatVersion = 1;
const kind = 'MirrorInventory';

/** Returns the ID of an inventory: a digest of the content, without the name of the registry. */
export function computeInventoryId(inventory: Inventory): string {
  const { repositories, manifests, blobs } = getTables(inventory);
  return computeDigest(JSON.stringify([formatVersion, repositories, manifests, blobs]));
}

/** Encodes an inventory as JSON. */
export function encodeInventory(inventory: Inventory): string {
  const fields = {
    kind,
    version: formatVersion,
    id: computeInventoryId(inventory),
    registry: inventory.registry,
    ...getTables(inventory),
  };
  return `${JSON.stringify(fields, null, 1)}\n`;
}

function getTables({ repositories, manifests, blobs }: Inventory) {
  const table = <T, U>(map: ReadonlyMap<string, T>, encode: (value: T) => U): Record<string, U> =>
    Object.fromEntries(
      [...map].sort(([a], [b]) => compareBytes(a, b)).map(([key, value]) => [key, encode(value)]),
    );
  const same = <T>(value: T): T => value;
  return {
    repositories: table(repositories, (repository) => ({
      tags: table(repository.tags, same),
      manifests: sortedByBytes(repository.manifests),
      blobs: sortedByBytes(repository.blobs),
    })),
    manifests: table(manifests, same),
    blobs: table(blobs, same),
  };
}

function isInventory(text: string): boolean {
  return /^\s*\{\s*"kind"\s*:\s*"MirrorInventory"/.test(text.slice(0, 1000));
}

/**
 * Reads an inventory file, at most 256 MiB; `file` names it in messages. Returns undefined for a file of another kind.
 * Throws errors of `parseInventory`, NOT_FOUND and IO.
 */
export async function readInventoryFile(place: string, file = place): Promise<Inventory | undefined> {
  const bytes = await readRegularFile(place, maxInventoryBytes, { name: file }).catch(
    throwFileError(file, { file }),
  );
  if (!isInventory(bytes.subarray(0, 1000).toString())) return undefined;
  return parseInventory(decodeFile(bytes, file), file);
}

/**
 * Parses an inventory and checks all of it. Throws OpmateError SYNTAX, INVALID (including an ID of other content), LIMIT,
 * or UNSUPPORTED for a newer version.
 */
export function parseInventory(text: string, file: string): Inventory {
  if (text.length > maxInventoryBytes)
    throw new LimitError(`more than ${maxInventoryBytes} bytes`, { about: file });
  const top = openJsonFile(text, file);
  const keys = ['kind', 'version', 'id', 'registry', 'repositories', 'manifests', 'blobs'] as const;
  const fields = top.object(keys, { unknown: 'ignore' });
  fields.kind.constant(kind);
  fields.version.formatVersion(formatVersion);
  const manifests = readSizes(fields.manifests, maxManifestBytes);
  const blobs = readSizes(fields.blobs, Number.MAX_SAFE_INTEGER);
  const inventory: Inventory = {
    registry: fields.registry.text(),
    repositories: readRepositories(fields.repositories, { manifests, blobs }),
    manifests,
    blobs,
  };
  if (fields.id.digest() !== computeInventoryId(inventory)) {
    const hint = 'copy the file again, or run api.readMirrorInventory again: it is damaged or was edited';
    return fields.id.fail('not the id of this content', { hint });
  }
  return inventory;
}

function readSizes(field: Field<never>, maxSize: number): Map<string, number> {
  return new Map(
    field.entries(maxInventoryItems).map(([digest, size]) => {
      if (!isDigest(digest)) size.fail(`invalid digest ${quoteShort(digest)}`);
      return [digest, size.size(maxSize)];
    }),
  );
}

function readRepositories(
  field: Field<never>,
  { manifests, blobs }: Pick<Inventory, 'manifests' | 'blobs'>,
): Map<string, InventoryRepository> {
  let items = 0;
  const getDigests = (list: Field<never>, known: ReadonlyMap<string, number>, table: string): Set<string> =>
    new Set(
      list.list(maxInventoryItems).map((item) => {
        const digest = item.digest();
        return known.has(digest) ? digest : item.fail(`${digest} is not in ${table}`);
      }),
    );
  const repositories = field.entries(maxRepositories).map(([name, item]): [string, InventoryRepository] => {
    if (!isRepositoryName(name)) item.fail('not a repository name');
    const fields = item.object(['tags', 'manifests', 'blobs']);
    const own = {
      manifests: getDigests(fields.manifests, manifests, 'manifests'),
      blobs: getDigests(fields.blobs, blobs, 'blobs'),
    };
    const tags = fields.tags.entries(maxInventoryItems).map(([tag, entry]): [string, string] => {
      if (!isTag(tag)) entry.fail('not a tag');
      const digest = entry.digest();
      return [tag, own.manifests.has(digest) ? digest : entry.fail(`${digest} is not among the manifests`)];
    });
    items += tags.length + own.manifests.size + own.blobs.size;
    if (items > maxInventoryItems)
      return item.fail(`more than ${maxInventoryItems} tags, manifests and blobs`, { code: 'limit' });
    return [name, { tags: new Map(tags), ...own }];
  });
  return new Map(repositories);
}

/** Returns an inventory as the base of an archive. */
export function toArchiveBase(inventory: Inventory): ArchiveBase {
  const holders = new Map<string, string[]>();
  for (const [name, { manifests, blobs }] of inventory.repositories) {
    for (const digest of [...manifests, ...blobs]) {
      pushTo(holders, digest, name);
    }
  }
  return {
    id: computeInventoryId(inventory),
    // Content without a repository cannot be read.
    sizeOf: (digest) =>
      holders.has(digest) ? (inventory.blobs.get(digest) ?? inventory.manifests.get(digest)) : undefined,
    findHolder(digest, repository) {
      const names = holders.get(digest);
      if (names === undefined || repository === undefined) return names?.[0];
      return names.find((name) => name === repository || name.endsWith(`/${repository}`)) ?? names[0];
    },
  };
}

/** Returns the totals of an inventory; bytes of blobs and manifests, each counted once. */
export function summarizeInventory({ repositories, manifests, blobs }: Inventory) {
  const sum = (sizes: ReadonlyMap<string, number>): number =>
    [...sizes.values()].reduce((total, size) => total + size, 0);
  return {
    repositories: repositories.size,
    tags: [...repositories.values()].reduce((total, { tags }) => total + tags.size, 0),
    manifests: manifests.size,
    blobs: blobs.size,
    bytes: sum(manifests) + sum(blobs),
  };
}
