import { OpmateError } from '../../core/errors.js';
import { formatReference, maxNameLength, parseReference } from '../../core/reference.js';
import type { OpenedReference } from '../../oci/image/open.js';
import { type MirrorTarget, pathBelow } from '../naming/mirror-target.js';
import { describeBundles, isCopiedLast } from '../image-set/planned-image.js';
import type { PinnedTransfer } from '../transfer/transfer-types.js';
import { type ImageSetLock, type LockedImage, getLockedName } from './lock.js';

/** Options of copying the images of a lock. */
export interface LockedTransfersOptions {
  target: MirrorTarget;
  /** Returns a function that opens an image without a source, such as one of an archive; undefined for others. */
  open?: ((image: LockedImage) => (() => Promise<OpenedReference>) | undefined) | undefined;
}

/** Returns `host/path:tag` of an image at a target, or `host/path@digest` without a tag. */
export function getTargetName(image: LockedImage, target: MirrorTarget): string {
  const name = getLockedName({ ...image, repository: pathBelow(target, image.repository) });
  return target.registry === '' ? name : `${target.registry}/${name}`;
}

/**
 * Returns the images of a lock as transfers, in its order, with their contents. Throws OpmateError INVALID for two
 * images with one name at the target, and for a name that is too long.
 */
export function toTransfers(lock: ImageSetLock, { target, open }: LockedTransfersOptions): PinnedTransfer[] {
  const known = new Map<string, LockedImage>();
  return lock.images.map((image) => {
    const targetName = getTargetName(image, target);
    const other = known.get(targetName);
    if (other !== undefined) {
      const problem = `${targetName}: same target for ${getLockedName(other)} and ${getLockedName(image)}`;
      throw new OpmateError('INVALID', problem, { hint: 'allow longer paths with --max-nested-paths' });
    }
    known.set(targetName, image);
    const { kind, reference, source, tag, contents } = image;
    const { digest } = contents.root;
    const registry = target.registry === '' ? 'localhost' : target.registry;
    const repository = pathBelow(target, image.repository);
    if (registry.length + 1 + repository.length > maxNameLength) {
      throw new OpmateError('INVALID', `longer than the ${maxNameLength} characters that a name may have`, {
        subject: targetName,
        hint: 'mirror to a shorter path',
      });
    }
    const version = tag === undefined ? { digest } : { tag };
    return {
      source: open?.(image) ?? { ...parseReference(source), digest },
      target: { transport: 'docker', text: targetName, registry, repository, ...version },
      sourceName: kind === 'catalog' ? reference : formatReference(parseReference(reference)),
      targetName,
      neededBy: describeBundles(image.bundles),
      ...(isCopiedLast(image) && { isLast: true }),
      contents,
    };
  });
}
