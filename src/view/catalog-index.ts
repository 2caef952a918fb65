import type { Meta } from '../catalog/meta.js';
import { DiagnosticList } from '../document/document.js';
import type { JsonObject } from '../document/json.js';
import type { BundleBlob } from '../model/declarative-config.js';
import { readProvidedApi } from '../model/dependency-needs.js';
import { detach } from '../model/describe.js';
import { type LifecycleVersion, lifecycleSchema, readLifecycle } from '../model/lifecycle.js';

/** What is kept of blobs while a catalog is read, in addition to facts: images, provided APIs, lifecycles. */
export class CatalogIndex {
  /** Every image, once. */
  readonly images: string[] = [];
  readonly lifecycles = new Map<string, LifecycleVersion[]>();
  readonly #places = new Map<string, number>();
  readonly #apis = new Map<string, Set<string>>();
  /** By package and bundle: places in `images`, the own image first or −1; of several bundles of a name, the first's. */
  readonly #imagesOfBundles = new Map<string, number[]>();

  addBundle(blob: BundleBlob): void {
    const key = `${blob.package}\0${blob.name}`;
    if (this.#imagesOfBundles.has(key)) return;
    const own = blob.image === '' ? -1 : this.#placeOf(blob.image);
    const related = new Set(
      blob.relatedImages.flatMap(({ image }) => (image === '' ? [] : this.#placeOf(image))),
    );
    related.delete(own);
    this.#imagesOfBundles.set(key, [own, ...related]);
    let apis = this.#apis.get(blob.package);
    if (apis === undefined) this.#apis.set(detach(blob.package), (apis = new Set()));
    for (const property of blob.properties) {
      const api = readProvidedApi(property);
      if (api !== undefined && !apis.has(api)) apis.add(detach(api));
    }
  }

  addOther({ schema, value }: Pick<Meta, 'schema'> & { value: JsonObject }): void {
    if (schema !== lifecycleSchema) return;
    // The doctor reports what is wrong with it.
    const { package: name, versions } = readLifecycle(value, new DiagnosticList());
    if (name !== '' && !this.lifecycles.has(name)) this.lifecycles.set(name, versions);
  }

  /** Provided by any bundle of a package, sorted. */
  getApis(packageName: string): string[] {
    return [...(this.#apis.get(packageName) ?? [])].sort();
  }

  /** Places of a bundle's images in `images`, its own first or −1. */
  getImages(packageName: string, bundle: string): number[] {
    return this.#imagesOfBundles.get(`${packageName}\0${bundle}`) ?? [-1];
  }

  #placeOf(image: string): number {
    let place = this.#places.get(image);
    if (place === undefined) {
      const kept = detach(image);
      place = this.images.push(kept) - 1;
      this.#places.set(kept, place);
    }
    return place;
  }
}
