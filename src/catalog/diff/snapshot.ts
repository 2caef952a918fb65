import { createHash } from 'node:crypto';
import { encodeGoJson, sortKeysDeep } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { type BundleBlob, schemas } from '../../model/declarative-config.js';
import { detach } from '../../model/describe.js';
import { type BlobOrigin, type CatalogFacts, emptyFacts } from '../../model/facts.js';
import type { Catalog } from '../catalog.js';
import { type FactsOptions, addFacts } from '../facts.js';
import { readLocated } from '../locate.js';
import type { Meta } from '../meta.js';

/** State of a catalog for comparison: names, edges, images, and the place and hash of every blob. */
export interface CatalogSnapshot {
  catalog: Catalog;
  facts: CatalogFacts;
  /** Blobs by schema, package and name; duplicates after the first have a number appended. */
  blobs: Map<string, BlobState>;
  /** All images and related images of bundles. */
  images: Set<string>;
}

interface BlobState extends Pick<Meta, 'schema' | 'package' | 'name' | 'origin'> {
  /** Hash of the text; may differ for blobs that differ in form only. */
  hash: string;
}

interface SnapshotOptions extends FactsOptions {
  /** Restrict to these packages; default: everything. */
  packages?: ReadonlySet<string> | undefined;
}

/** Reads a catalog once. Throws OpmateError with file and line for an invalid blob. */
export async function takeSnapshot(
  catalog: Catalog,
  options: SnapshotOptions = {},
): Promise<CatalogSnapshot> {
  const facts = emptyFacts();
  const snapshot: CatalogSnapshot = { catalog, facts, blobs: new Map(), images: new Set() };
  const { packages } = options;
  await readLocated(catalog, options, (meta) => {
    const owner = meta.schema === schemas.package ? meta.name : meta.package;
    if (packages?.has(owner) !== false) addBlob(snapshot, meta, options);
  });
  return snapshot;
}

function addBlob({ facts, blobs, images }: CatalogSnapshot, meta: Meta, options: FactsOptions): void {
  const { origin, text, value } = meta;
  const decoded = addFacts(facts, meta, options);
  if (decoded.kind === 'bundle') {
    for (const image of getBundleImages(decoded.blob)) if (!images.has(image)) images.add(detach(image));
  }
  const packageName = decoded.kind === 'package' ? decoded.blob.name : meta.package;
  const state = {
    schema: detach(meta.schema),
    package: detach(packageName),
    name: detach(meta.name),
    origin,
    hash: createHash('sha256')
      .update(text ?? encodeGoJson(value))
      .digest('base64'),
  };
  const key = toBlobKey(state);
  let free = key;
  for (let index = 2; blobs.has(free); index++) free = `${key}\0${index}`;
  blobs.set(free, state);
}

/** Returns the key of a blob. */
export function toBlobKey(state: { schema: string; package: string; name: string }): string {
  return `${state.package}\0${state.schema}\0${state.name}`;
}

/** Returns the image and related images of a bundle, without empty ones. */
export function getBundleImages({ image, relatedImages }: BundleBlob): Set<string> {
  return new Set([image, ...relatedImages.map((related) => related.image)].filter((name) => name !== ''));
}

/** Reads a blob again, with keys in byte order at every level. Throws OpmateError IO if its file has changed. */
export async function readSorted(catalog: Catalog, origin: BlobOrigin): Promise<JsonObject> {
  return sortKeysDeep(await catalog.read(origin)) as JsonObject;
}

/** Reports whether the catalog format itself defines a schema. */
export function isOwnSchema(schema: string): boolean {
  return Object.values(schemas).some((own) => own === schema);
}
