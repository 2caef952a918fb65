import type { Meta } from '../catalog/meta.js';
import { getOrAdd } from '../core/groups.js';
import { DiagnosticList } from '../document/document.js';
import type { JsonObject } from '../document/json.js';
import type { BundleBlob } from '../model/declarative-config.js';
import { readProvidedApi } from '../model/dependency-needs.js';
import { detach } from '../model/describe.js';
import { type LifecycleVersion, lifecycleSchema, readLifecycle } from '../model/lifecycle.js';

/** Images, provided APIs and lifecycles of a catalog, which its facts lack. */
export class CatalogIndex {
  /** Unique images. */
  readonly images: string[] = [];
  readonly lifecycles = new Map<string, LifecycleVersion[]>();
  readonly #imageIndexes = new Map<string, number>();
  readonly #apis = new Map<string, Set<string>>();
  /** By package and bundle: indexes into `images`, the bundle image first, −1 for none. */
  readonly #bundleImages = new Map<string, number[]>();

  addBundle(blob: BundleBlob): void {
    const key = `${blob.package}\0${blob.name}`;
    if (this.#bundleImages.has(key)) return;
    const bundleImage = blob.image === '' ? -1 : this.#addImage(blob.image);
    const relatedImages = blob.relatedImages.flatMap(({ image }) =>
      image === '' ? [] : this.#addImage(image),
    );
    this.#bundleImages.set(key, [...new Set([bundleImage, ...relatedImages])]);
    const apis = getOrAdd(this.#apis, detach(blob.package), () => new Set());
    for (const property of blob.properties) {
      const api = readProvidedApi(property);
      if (api !== undefined && !apis.has(api)) apis.add(detach(api));
    }
  }

  addOther({ schema, value }: Pick<Meta, 'schema'> & { value: JsonObject }): void {
    if (schema !== lifecycleSchema) return;
    // The doctor reports the diagnostics.
    const { package: name, versions } = readLifecycle(value, new DiagnosticList());
    if (name !== '' && !this.lifecycles.has(name)) this.lifecycles.set(name, versions);
  }

  /** Returns the APIs that bundles of a package provide, sorted. */
  getApis(packageName: string): string[] {
    return [...(this.#apis.get(packageName) ?? [])].sort();
  }

  /** Returns indexes into `images`, the bundle image first, −1 for none. */
  getImages(packageName: string, bundle: string): number[] {
    return this.#bundleImages.get(`${packageName}\0${bundle}`) ?? [-1];
  }

  #addImage(image: string): number {
    let index = this.#imageIndexes.get(image);
    if (index === undefined) {
      const detached = detach(image);
      index = this.images.push(detached) - 1;
      this.#imageIndexes.set(detached, index);
    }
    return index;
  }
}
