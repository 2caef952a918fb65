import type { OpmateError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import type { RegistryReference } from '../../core/reference.js';
import { requireReference } from '../naming/image-location.js';
import type { TargetName } from '../naming/image-name.js';
import type { Transfer } from '../transfer/transfer-types.js';
import { type PlannedImage, describeBundles, isCopiedLast } from './planned-image.js';

/** Content to mirror, and what is left out: data for a dry run, a copy, the status, deletion and cluster manifests. */
export interface MirrorPlan<T extends PlannedImage = PlannedImage> {
  images: readonly T[];
  catalogs: readonly TargetCatalog[];
  releases?: readonly MirroredRelease[] | undefined;
  /** Invalid references, and catalogs of which nothing is left; both are left out. */
  faults: readonly { name: string; error: OpmateError }[];
  /** Images excluded by `blockedImages`, by source, with the matching pattern. */
  blocked: readonly { source: string; pattern: string }[];
  warnings: readonly string[];
}

/** Content of a mirror after a plan is carried out. */
export type MirroredContent = Pick<
  MirrorPlan<PlannedImage<RegistryReference>>,
  'images' | 'catalogs' | 'releases'
>;

/** A catalog of a plan. */
export interface TargetCatalog {
  operator: { catalog: string; targetCatalogSourceTemplate?: string | undefined };
  name: TargetName;
  /** Whole name with tag at the target. */
  destination: string;
  /** Set for a sqlite index, which OLM v1 does not support. */
  isDatabase?: boolean | undefined;
}

/** A release of a plan with the signature for its clusters. */
interface MirroredRelease {
  image: { digest: string };
  signature: Buffer | undefined;
}

/** Returns content without the images and catalogs that `isKept` excludes by their destinations. */
export function limitContent<T extends MirroredContent>(
  plan: T,
  isKept: (destination: string) => boolean,
): T {
  const keeps = ({ destination }: { destination: string }): boolean => isKept(destination);
  return { ...plan, images: plan.images.filter(keeps), catalogs: plan.catalogs.filter(keeps) };
}

/** Returns the lines of a mapping, sorted: `SOURCE=DESTINATION`, the latter below `scheme`. */
export function formatMappingLines({ images }: Pick<MirrorPlan, 'images'>, scheme = ''): string[] {
  return images
    .filter(({ kind }) => kind !== 'signature')
    .map(({ source, destination }) => `${source}=${scheme}${destination}`)
    .sort(compareBytes);
}

/** Returns an image of a plan to copy. */
export function toTransfer(image: PlannedImage): Transfer {
  const { open, from, reference, target, title, destination, bundles, place, platforms, contents } = image;
  return {
    source: open ?? from ?? reference,
    target,
    sourceName: title,
    targetName: destination,
    neededBy: describeBundles(bundles),
    place,
    platforms,
    contents,
    isLast: isCopiedLast(image),
  };
}

/** Returns an image that its names locate, to copy. Throws OpmateError INVALID for a name that no registry can have. */
export function toNamedTransfer({ from, ...image }: PlannedImage): Transfer {
  const source = requireReference(from ?? image.reference);
  return toTransfer({ ...image, from: source, target: requireReference(image.target) });
}
