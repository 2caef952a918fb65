import type { Meta } from '../catalog/meta.js';
import { getOrAdd } from '../core/groups.js';
import { DiagnosticList } from '../document/document.js';
import type { JsonObject } from '../document/json.js';
import type { BundleBlob } from '../model/declarative-config.js';
import { readProvidedApi } from '../model/dependency-needs.js';
import { detach } from '../model/describe.js';
import { type LifecycleVersion, lifecycleSchema, readLifecycle } from '../model/lifecycle.js';

/** Index of a catalog; see `createCatalogIndex`. */
export type PageIndex = ReturnType<typeof createCatalogIndex>;

/** Returns an index of images, provided APIs and lifecycles of a catalog, which its facts lack. */
export function createCatalogIndex() {
  /** Indexes of unique images, in their order. */
  const imageIndexes = new Map<string, number>();
  const images: string[] = [];
  const lifecycles = new Map<string, LifecycleVersion[]>();
  const apis = new Map<string, Set<string>>();
  /** By package and bundle: indexes into `images`, the bundle image first, −1 for none. */
  const bundleImages = new Map<string, number[]>();
  const addImage = (image: string): number => {
    const known = imageIndexes.get(image);
    if (known !== undefined) return known;
    const detached = detach(image);
    imageIndexes.set(detached, images.length);
    return images.push(detached) - 1;
  };
  return {
    /** Unique images. */
    images,
    lifecycles,
    addBundle(blob: BundleBlob): void {
      const key = `${blob.package}\0${blob.name}`;
      if (bundleImages.has(key)) return;
      const bundleImage = blob.image === '' ? -1 : addImage(blob.image);
      const relatedImages = blob.relatedImages.flatMap(({ image }) => (image === '' ? [] : addImage(image)));
      bundleImages.set(key, [...new Set([bundleImage, ...relatedImages])]);
      const provided = getOrAdd(apis, detach(blob.package), () => new Set());
      for (const property of blob.properties) {
        const api = readProvidedApi(property);
        if (api !== undefined && !provided.has(api)) provided.add(detach(api));
      }
    },
    addOther({ schema, value }: Pick<Meta, 'schema'> & { value: JsonObject }): void {
      if (schema !== lifecycleSchema) return;
      // The doctor reports the diagnostics.
      const { package: name, versions } = readLifecycle(value, new DiagnosticList());
      if (name !== '' && !lifecycles.has(name)) lifecycles.set(name, versions);
    },
    /** Returns the APIs that bundles of a package provide, sorted. */
    getApis: (packageName: string): string[] => [...(apis.get(packageName) ?? [])].sort(),
    /** Returns indexes into `images`, the bundle image first, −1 for none. */
    getImages: (packageName: string, bundle: string): number[] =>
      bundleImages.get(`${packageName}\0${bundle}`) ?? [-1],
  };
}
