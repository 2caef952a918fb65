import {
  type ImageSetLock,
  type LockedCatalog,
  type LockedImage,
  getLockedName,
  isSameName,
} from '../lock/lock.js';
import { toBundleKey } from '../plan/planned-image.js';
import { withoutStraySignatures } from './archived-set.js';

/** Selected content that a run skipped. */
interface SkippedContent {
  /** Names of images below the target, as `getLockedName`. */
  images: ReadonlySet<string>;
  /** As `package/bundle`. */
  bundles: ReadonlySet<string>;
  /** References of catalogs as in the configuration. */
  catalogs: readonly string[];
}

/** Content of an earlier lock that a new one does not select anew, but the target is to keep. */
type HeldContent = Pick<ImageSetLock, 'images'> & { catalogs: LockedCatalog[] };

/**
 * Returns the content of the previous lock that a run skipped: its images, those of its bundles, its catalogs with all that
 * these name, and the signatures of kept images. Skipped content is still selected, so it stays at the target.
 */
export function findHeld(previous: ImageSetLock, next: ImageSetLock, skipped: SkippedContent): HeldContent {
  const names = new Set(next.images.map(getLockedName));
  const isNew = (image: LockedImage): boolean => !names.has(getLockedName(image));
  const catalogs = previous.catalogs
    .filter(({ catalog }) => skipped.catalogs.includes(catalog))
    .filter((catalog) => !next.catalogs.some((other) => isSameName(catalog, other)));
  const bundles = new Set([
    ...skipped.bundles,
    ...catalogs.flatMap(({ packages }) =>
      packages.flatMap(({ name, bundles: own }) =>
        own.map((bundle) => toBundleKey({ package: name, bundle: bundle.name })),
      ),
    ),
  ]);
  const isSkipped = (image: LockedImage): boolean =>
    skipped.images.has(getLockedName(image)) ||
    image.bundles.some((bundle) => bundles.has(toBundleKey(bundle))) ||
    (image.kind === 'catalog' && catalogs.some((catalog) => isSameName(catalog, image)));
  const held = previous.images.filter(
    (image) => image.kind !== 'signature' && isNew(image) && isSkipped(image),
  );
  const signatures = previous.images.filter((image) => image.kind === 'signature' && isNew(image));
  const kept = new Set(withoutStraySignatures([...next.images, ...held, ...signatures]));
  return {
    images: [...held, ...signatures.filter((image) => kept.has(image))].map((image) => ({
      ...image,
      isHeld: true,
    })),
    catalogs: catalogs.map((catalog) => ({ ...catalog, isHeld: true })),
  };
}
