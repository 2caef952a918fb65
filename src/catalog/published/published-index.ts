/**
 * A published catalog: static files that any web server serves. Below the directory that `catalog publish` writes to
 *
 *     catalogs/index.json                     the catalogs
 *     catalogs/NAME/catalog-index.json        the files of one catalog
 *     catalogs/NAME/api/v1/all                all of its blobs, as the HTTP catalog API has them
 *     catalogs/NAME/all.json                  the same, where the first HTTP catalog API had them
 *     blobs/sha256/AB/HEX.jsonl               the same, and the blobs of each package, by digest
 *     blobs/sha256/AB/HEX.svg                 icons
 *
 * Files by digest never change. Of JSON lines there are compressed forms beside them, with `.gz` and `.zst` appended.
 */
import { parseDigest } from '../../core/digest.js';
import { openJson } from '../../document/document.js';
import type { Field } from '../../document/field.js';
import { subdomainFault } from '../../kube/names.js';

export const catalogIndexName = 'catalog-index.json';
export const catalogsDirectory = 'catalogs';
export const catalogListName = `${catalogsDirectory}/index.json`;
export const blobsDirectory = 'blobs/sha256';

/** Maximum bytes of an index: about 200,000 packages. */
export const maxPublishedIndexBytes = 64 * 1024 * 1024;
const maxItems = 1_000_000;
const version = 1;
const catalogKind = 'PublishedCatalog';
const listKind = 'PublishedCatalogs';

/** A file by digest. */
export interface PublishedFile {
  /** Digest `sha256:…`. */
  hash: string;
  /** Uncompressed size in bytes. */
  size: number;
}

export interface PublishedIcon extends PublishedFile {
  mediaType: string;
}

/** Blobs of a package: its `olm.package` without the icon, then the others in the order of the catalog. */
export interface PublishedPackage extends PublishedFile {
  name: string;
  /** Number of blobs. */
  count: number;
  icon?: PublishedIcon | undefined;
}

/** A catalog in the list; the file has all its blobs. */
export interface ListedPublication extends PublishedFile {
  name: string;
  /** Number of blobs. */
  count: number;
  /** Number of packages. */
  packages: number;
}

export interface PublishedCatalog extends Omit<ListedPublication, 'packages'> {
  /** Codings of the compressed files: `gzip`, `zstd`. */
  codings: string[];
  /** Packages by name. */
  packages: PublishedPackage[];
}

/** File extensions of icons by media type. */
const iconExtensions: Readonly<Record<string, string>> = {
  'image/svg+xml': '.svg',
  'image/png': '.png',
  'image/jpeg': '.jpg',
  'image/gif': '.gif',
};

/** Returns the path of JSON lines below the published directory. */
export function linesPath({ hash }: PublishedFile): string {
  return blobPath(hash, '.jsonl');
}

/** Returns the path of an icon below the published directory. */
export function iconPath({ hash, mediaType }: PublishedIcon): string {
  return blobPath(hash, iconExtensions[mediaType.toLowerCase()] ?? '.bin');
}

function blobPath(hash: string, extension: string): string {
  const { hex } = parseDigest(hash);
  return `${blobsDirectory}/${hex.slice(0, 2)}/${hex}${extension}`;
}

/** Returns the path of a file of a catalog below the published directory. */
export function catalogPath(name: string, file: string): string {
  return `${catalogsDirectory}/${name}/${file}`;
}

/** Returns the text of the index of a catalog, one package per line. */
export function encodePublishedCatalog(catalog: PublishedCatalog): string {
  const { name, hash, size, count, codings, packages } = catalog;
  const head = JSON.stringify({ kind: catalogKind, version, name, hash, size, count, codings });
  return withItems(head, 'packages', packages);
}

/** Returns the text of the list of catalogs, one per line. */
export function encodeCatalogList(catalogs: readonly ListedPublication[]): string {
  return withItems(JSON.stringify({ kind: listKind, version }), 'catalogs', catalogs);
}

function withItems(head: string, key: string, items: readonly object[]): string {
  const lines = items.map((item) => `\n${JSON.stringify(item)}`).join(',');
  return `${head.slice(0, -1)},${JSON.stringify(key)}:[${lines}\n]}\n`;
}

/**
 * Reports whether bytes start like the index of a catalog or the list of catalogs, which are detected by their start
 * alone.
 */
export function publishedKind(head: Buffer): 'catalog' | 'list' | undefined {
  const text = head.toString('latin1');
  if (text.startsWith(`{"kind":"${catalogKind}",`)) return 'catalog';
  return text.startsWith(`{"kind":"${listKind}",`) ? 'list' : undefined;
}

/** Reads the index of a catalog. Throws OpmateError SYNTAX or INVALID that starts with `label`. */
export function parsePublishedCatalog(bytes: Buffer, label: string): PublishedCatalog {
  const root = openDocument(bytes, label, catalogKind);
  const seen = new Set<string>();
  const packages = root
    .field('packages')
    .list(maxItems)
    .map((item): PublishedPackage => {
      const name = item.field('name').anyText();
      if (seen.has(name)) item.fail('duplicate package', { code: 'duplicate' });
      seen.add(name);
      const icon = item.field('icon');
      return {
        name,
        ...getFile(item),
        count: item.field('count').size(),
        ...(icon.isPresent && { icon: { ...getFile(icon), mediaType: icon.field('mediaType').anyText() } }),
      };
    });
  const codings = root
    .field('codings')
    .list(10)
    .map((item) => item.text());
  return { name: getName(root), ...getFile(root), count: root.field('count').size(), codings, packages };
}

/** Reads the list of catalogs. Throws OpmateError SYNTAX or INVALID that starts with `label`. */
export function parseCatalogList(bytes: Buffer, label: string): ListedPublication[] {
  return openDocument(bytes, label, listKind)
    .field('catalogs')
    .list(maxItems)
    .map((item) => ({
      name: getName(item),
      ...getFile(item),
      count: item.field('count').size(),
      packages: item.field('packages').size(),
    }));
}

function openDocument(bytes: Buffer, label: string, kind: string): Field<never> {
  const root = openJson(bytes, { name: label, kind: 'reference' });
  root.field('kind').constant(kind);
  root.field('version').formatVersion(version);
  return root;
}

/** Returns a name, which becomes part of paths and URLs. */
function getName(item: Field<never>): string {
  const name = item.field('name').text();
  const fault = subdomainFault(name);
  return fault === undefined ? name : item.field('name').fail(fault);
}

function getFile(item: Field<never>): PublishedFile {
  const hash = item.field('hash').digest();
  if (parseDigest(hash).algorithm !== 'sha256') item.field('hash').fail('expected a SHA-256 digest');
  return { hash, size: item.field('size').size() };
}
