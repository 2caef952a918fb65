import type { OpmateError } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { type OnError, type SetImage, isOfRelease, toBundleKey } from '../plan/planned-image.js';
import type { StepFaults } from '../transfer/transfer-types.js';
import type { ImageSetPlan, PlannedCatalog } from './image-set-plan.js';

/** Content that a run leaves out: what its plan skips, what fails, and what only that needs. */
export class OmittedContent {
  /** In the order of their occurrence. */
  readonly faults: StepFaults;
  /** Messages about bundles and images removed from catalogs. */
  readonly changes: string[];
  /** Bundles removed from catalogs, as `package/bundle`. */
  readonly bundles: Set<string>;
  /** References removed from `relatedImages` of bundles. */
  private readonly texts = new Set<string>();
  private readonly failed = new Map<SetImage, OpmateError>();
  /** Images that only removed bundles need. */
  private readonly unneeded = new Set<SetImage>();

  private readonly images: readonly SetImage[];
  private readonly onError: OnError;

  constructor(
    { images, faults, skipped }: Pick<ImageSetPlan, 'images' | 'faults' | 'skipped'>,
    onError: OnError,
  ) {
    this.images = images;
    this.onError = onError;
    this.faults = {
      missing: [],
      failed: faults.map(({ name, error }) => ({ transfer: { sourceName: name, targetName: '' }, error })),
    };
    this.changes = [...skipped.changes];
    this.bundles = new Set(skipped.bundles);
  }

  get isEmpty(): boolean {
    return this.failed.size === 0;
  }

  /** Notes the faults of a step. Throws the failure of an image of a release, which cannot be installed without it. */
  note({ missing, failed }: StepFaults, findImage: (targetName: string) => SetImage | undefined): void {
    this.faults.missing.push(...missing);
    this.faults.failed.push(...failed);
    for (const { transfer, error } of failed) {
      const image = findImage(transfer.targetName);
      if (image !== undefined && isOfRelease(image)) throw error;
      if (image !== undefined) this.failed.set(image, error);
    }
  }

  hasFailed(image: SetImage): boolean {
    return this.failed.has(image);
  }

  includes(image: SetImage): boolean {
    return this.failed.has(image) || this.unneeded.has(image);
  }

  /** Returns the names below the target of images that are left out. */
  names(): Set<string> {
    const omitted = this.images.filter((image) => this.includes(image));
    return new Set(omitted.map(({ name }) => `${name.repository}:${name.tag}`));
  }

  /** Removes bundles, or only references, of failed images, and what only these need; reports whether references are new. */
  removeFailed(): boolean {
    const before = this.texts.size;
    for (const image of this.failed.keys()) {
      if (image.kind !== 'bundle' && image.kind !== 'related') continue;
      if (this.onError === 'skip-image' && image.kind === 'related')
        for (const text of image.texts) this.texts.add(text);
      else for (const bundle of image.bundles) this.bundles.add(toBundleKey(bundle));
    }
    for (const image of this.images) {
      const isOfBundles = image.kind === 'bundle' || image.kind === 'related';
      if (!isOfBundles || image.isRequested === true || image.bundles.length === 0) continue;
      if (image.bundles.every((bundle) => this.bundles.has(toBundleKey(bundle)))) this.unneeded.add(image);
    }
    return this.texts.size > before;
  }

  /** Returns the removed bundles of a catalog. */
  bundlesOf({ selection }: PlannedCatalog): string[] {
    return selection.facts.bundles
      .map(({ package: packageName, name }) => toBundleKey({ package: packageName, bundle: name }))
      .filter((key) => this.bundles.has(key));
  }

  /** Returns the references that a catalog is rebuilt without. */
  textsOf({ withoutImages }: PlannedCatalog): string[] {
    return sortedByBytes(new Set([...withoutImages, ...this.texts]));
  }

  /** Returns the names of removed bundles. */
  bundleNames(): string[] {
    return sortedByBytes([...this.bundles].map((key) => key.slice(key.indexOf('/') + 1)));
  }
}
