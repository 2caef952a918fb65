import { locate } from '../catalog/locate.js';
import type { Catalog, MetasOptions } from '../catalog/catalog.js';
import { OpmateError } from '../core/errors.js';
import { findField } from '../document/go-json-fold.js';
import { quoteGo } from '../document/go-json.js';
import { type JsonValue, isJsonObject } from '../document/json.js';
import type { Meta } from '../catalog/meta.js';
import { schemas } from '../model/declarative-config.js';

/** An image that a catalog names. */
export interface CatalogImage {
  /** As the catalog writes it; never empty. */
  image: string;
  /** `bundle` for the image that a blob itself is made of, `related` for what stands in its `relatedImages`. */
  kind: 'bundle' | 'related';
  /** Empty where the blob belongs to no package. */
  package: string;
  /** Name of the blob: for an `olm.bundle` that of the bundle. */
  bundle: string;
}

/**
 * The images that a catalog names, blob by blob: of blobs of any schema the `image` and each of
 * `relatedImages`, once a blob. Of a sqlite index it is what the index has stored for its bundles, those that
 * are deprecated or in no channel included, which a conversion to blobs would lose. Throws what reading the
 * catalog throws, and OpmateError INVALID for an `olm.bundle` whose images are not written as they must be;
 * in other schemas such fields have a meaning of their own, and are passed over.
 * (Source: `oc adm catalog mirror`, which looks at every blob.)
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
    let images: CatalogImage[];
    try {
      images = getImages(meta);
    } catch (error) {
      const located = await locate(catalog, meta.origin, error);
      if (options.onFault === undefined || !(located instanceof OpmateError)) throw located;
      options.onFault(located);
      continue;
    }
    yield* images;
  }
}

/** The images that one blob names, each once. Throws OpmateError INVALID, see `readCatalogImages`. */
export function getImages(meta: Meta): CatalogImage[] {
  const isPackage = meta.schema === schemas.package;
  const names = { package: isPackage ? meta.name : meta.package, bundle: meta.name };
  const own = toText(findField(meta.value, 'image'), meta, 'image');
  const matches = new Map<string, CatalogImage>();
  if (own !== '') matches.set(own, { image: own, kind: 'bundle', ...names });
  for (const [i, item] of toList(findField(meta.value, 'relatedImages'), meta).entries()) {
    const image = isJsonObject(item)
      ? toText(findField(item, 'image'), meta, `relatedImages[${i}].image`)
      : unexpected(item, meta, `relatedImages[${i}]`, 'an object', '');
    if (image !== '' && !matches.has(image)) matches.set(image, { image, kind: 'related', ...names });
  }
  return [...matches.values()];
}

function toText(value: JsonValue | undefined, meta: Meta, path: string): string {
  if (value === undefined || typeof value === 'string') return value ?? '';
  return unexpected(value, meta, path, 'a string', '');
}

function toList(value: JsonValue | undefined, meta: Meta): JsonValue[] {
  if (value === undefined || Array.isArray(value)) return value ?? [];
  return unexpected(value, meta, 'relatedImages', 'a list', []);
}

function unexpected<T>(value: JsonValue, meta: Meta, path: string, wanted: string, empty: T): T {
  if (meta.schema !== schemas.bundle || value === null) return empty;
  const subject = `package ${quoteGo(meta.package)}, bundle ${quoteGo(meta.name)}`;
  throw new OpmateError('INVALID', `${path}: expected ${wanted}`, { subject });
}
