import type { Catalog, CatalogImage, MetasOptions } from '../catalog/catalog.js';
import { locate } from '../catalog/locate.js';
import type { Meta } from '../catalog/meta.js';
import { OpmateError } from '../core/errors.js';
import { findField } from '../document/go-json-fold.js';
import { quoteGo } from '../document/go-json.js';
import { type JsonValue, isJsonObject } from '../document/json.js';
import { schemas } from '../model/declarative-config.js';

/**
 * Reads the images of a catalog: `image` and `relatedImages` of blobs of any schema, each once per blob; of a sqlite
 * index the images stored for its bundles, including deprecated ones. Throws errors of reading the catalog, and
 * OpmateError INVALID for an `olm.bundle` with invalid fields, which blobs of other schemas may have. (Source: `oc adm
 * catalog mirror`.)
 */
export async function* readCatalogImages(
  catalog: Catalog,
  options: MetasOptions = {},
): AsyncGenerator<CatalogImage, void, undefined> {
  if (catalog.storedImages !== undefined) {
    yield* catalog.storedImages();
    return;
  }
  for await (const meta of catalog.metas({ withoutManifests: true, ...options })) {
    try {
      yield* await readBlobImages(catalog, meta);
    } catch (error) {
      if (options.onFault === undefined || !(error instanceof OpmateError)) throw error;
      options.onFault(error);
    }
  }
}

/** Returns the images of a blob as `getImages`; errors have the place of the blob. */
export async function readBlobImages(catalog: Catalog, meta: Meta): Promise<CatalogImage[]> {
  try {
    return getImages(meta);
  } catch (error) {
    throw await locate(catalog, meta.origin, error);
  }
}

/** Returns the images of a blob, each once. Throws OpmateError INVALID, see `readCatalogImages`. */
export function getImages(meta: Meta): CatalogImage[] {
  const isPackage = meta.schema === schemas.package;
  const names = { package: isPackage ? meta.name : meta.package, bundle: meta.name };
  const bundleImage = toText(findField(meta.value, 'image'), meta, 'image');
  const images = new Map<string, CatalogImage>();
  if (bundleImage !== '')
    images.set(bundleImage, { image: bundleImage, kind: 'bundle', ...names, field: 'image' });
  const related = findField(meta.value, 'relatedImages') ?? [];
  const items = Array.isArray(related) ? related : reject(related, meta, 'relatedImages', 'a list', []);
  for (const [i, item] of items.entries()) {
    const field = `relatedImages[${i}].image`;
    const image = isJsonObject(item)
      ? toText(findField(item, 'image'), meta, field)
      : reject(item, meta, `relatedImages[${i}]`, 'an object', '');
    if (image !== '' && !images.has(image)) images.set(image, { image, kind: 'related', ...names, field });
  }
  return [...images.values()];
}

function toText(value: JsonValue | undefined, meta: Meta, path: string): string {
  if (value === undefined || typeof value === 'string') return value ?? '';
  return reject(value, meta, path, 'a string', '');
}

/** Throws for a bundle; returns `empty` for null and for blobs of other schemas, whose fields mean something else. */
function reject<T>(value: JsonValue, meta: Meta, path: string, expected: string, empty: T): T {
  if (meta.schema !== schemas.bundle || value === null) return empty;
  const subject = `package ${quoteGo(meta.package)}, bundle ${quoteGo(meta.name)}`;
  throw new OpmateError('INVALID', `${path}: expected ${expected}`, { subject });
}
