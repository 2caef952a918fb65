import { OpmateError } from '../../core/errors.js';
import {
  type RegistryReference,
  formatReference,
  maxNameLength,
  parseReference,
} from '../../core/reference.js';
import type { ImageContents } from '../../oci/image/contents.js';
import type { OpenedReference } from '../../oci/image/open.js';
import { type MirrorTarget, getDestination, pathBelow } from '../naming/mirror-target.js';
import { type MirrorPlan, toTransfer } from '../plan/mirror-plan.js';
import type { PlannedImage } from '../plan/planned-image.js';
import type { PinnedTransfer } from '../transfer/transfer-types.js';
import { type ImageSetLock, type LockedImage, getLockedName } from './lock.js';

/** Options of planning the images of a lock. */
export interface LockPlanOptions {
  target: MirrorTarget;
  /** Returns a function that opens an image without a source, such as one of an archive; undefined for others. */
  open?: ((image: LockedImage) => (() => Promise<OpenedReference>) | undefined) | undefined;
}

/** An image of a plan that a lock pins. */
export interface PinnedImage extends PlannedImage<RegistryReference> {
  kind: LockedImage['kind'];
  locked: LockedImage;
  contents: ImageContents;
}

/** Returns what a lock pins, signatures included, as a plan in its order. */
export function planLock(lock: ImageSetLock, { target, open }: LockPlanOptions): MirrorPlan<PinnedImage> {
  const images = lock.images.map((locked): PinnedImage => {
    const { kind, source, aliases, bundles, contents } = locked;
    const reference = parseReference(locked.reference);
    const location = locate(locked, target);
    return {
      locked,
      kind,
      reference,
      from: { ...parseReference(source), digest: contents.root.digest },
      source,
      title: kind === 'catalog' ? reference.text : formatReference(reference),
      target: location,
      destination: location.text,
      bundles,
      aliases: aliases?.map((text) => parseReference(text)),
      contents,
      open: open?.(locked),
    };
  });
  const catalogs = lock.catalogs.map(
    ({ catalog, repository, tag, isDatabase, targetCatalogSourceTemplate }) => ({
      isDatabase,
      operator: { catalog, targetCatalogSourceTemplate: targetCatalogSourceTemplate?.file },
      destination: getDestination(target, pathBelow(target, repository), tag),
      name: { repository, tag },
    }),
  );
  return { images, catalogs, releases: lock.releases?.releases, faults: [], blocked: [], warnings: [] };
}

/** Returns `host/path:tag` of an image at a target, or `host/path@digest` without a tag. */
export function getTargetName(image: LockedImage, target: MirrorTarget): string {
  return locate(image, target).text;
}

function locate(image: LockedImage, target: MirrorTarget): RegistryReference {
  const repository = pathBelow(target, image.repository);
  const name = getLockedName({ ...image, repository });
  const isArchive = target.registry === '';
  return {
    transport: 'docker',
    text: isArchive ? name : `${target.registry}/${name}`,
    registry: isArchive ? 'localhost' : target.registry,
    repository,
    ...(image.tag === undefined ? { digest: image.contents.root.digest } : { tag: image.tag }),
  };
}

/**
 * Returns the images of a lock as transfers, in its order, with their contents. Throws OpmateError INVALID for two
 * images with one name at the target, and for a name that is too long.
 */
export function toTransfers(lock: ImageSetLock, options: LockPlanOptions): PinnedTransfer[] {
  const known = new Map<string, LockedImage>();
  return planLock(lock, options).images.map((image) => {
    const { locked, destination, target, contents } = image;
    const other = known.get(destination);
    if (other !== undefined) {
      const problem = `${destination}: same target for ${getLockedName(other)} and ${getLockedName(locked)}`;
      throw new OpmateError('INVALID', problem, { hint: 'allow longer paths with mirror.maxNestedPaths' });
    }
    known.set(destination, locked);
    if (target.registry.length + 1 + target.repository.length > maxNameLength) {
      throw new OpmateError('INVALID', `longer than the ${maxNameLength} characters that a name may have`, {
        subject: destination,
        hint: 'mirror to a shorter path',
      });
    }
    return { ...toTransfer(image), contents };
  });
}
