import { OpmateError } from '../../core/errors.js';
import {
  type Reference,
  type RegistryReference,
  formatReference,
  parseReference,
} from '../../core/reference.js';
import type { OpenedReference } from '../../oci/image/open.js';
import { type MirrorTarget, pathBelow } from '../image-set/image-set-names.js';
import { isCopiedLast } from '../image-set/image-set-plan.js';
import { type ImageSetLock, type LockedImage, nameOfLocked } from './lock.js';
import type { PinnedTransfer } from '../transfer/transfer-types.js';

/** The longest registry and repository together that a reference may have. */
const maxNameLength = 255;

export interface LockedTransfersOptions {
  target: MirrorTarget;
  /** How an image is opened that is not taken from its source, such as one of an archive or one that was built. */
  open?: ((image: LockedImage) => (() => Promise<OpenedReference>) | undefined) | undefined;
}

/** Where an image of a lock is at a target: `host/path:tag`, or `host/path@digest` where it has no tag. */
export function getTargetName(image: LockedImage, target: MirrorTarget): string {
  const name = nameOfLocked({ ...image, repository: pathBelow(target, image.repository) });
  return target.registry === '' ? name : `${target.registry}/${name}`;
}

/**
 * The images of a lock as transfers, in its order: from their repositories by digest, with all that they consist of,
 * signatures among them; catalogs last. Throws OpmateError INVALID for two images that would get one name at the
 * target, and for a name that is too long there.
 */
export function transfersOfLock(
  lock: ImageSetLock,
  { target, open }: LockedTransfersOptions,
): PinnedTransfer[] {
  const known = new Map<string, LockedImage>();
  return lock.images.map((image) => {
    const targetName = getTargetName(image, target);
    const other = known.get(targetName);
    if (other !== undefined) {
      const problem = `${targetName}: same target for ${nameOfLocked(other)} and ${nameOfLocked(image)}`;
      throw new OpmateError('INVALID', problem, { hint: 'allow longer paths with --max-nested-paths' });
    }
    known.set(targetName, image);
    return {
      source: open?.(image) ?? getSource(image),
      target: getTarget(image, targetName, target),
      sourceName:
        image.kind === 'catalog' ? image.reference : formatReference(parseReference(image.reference)),
      targetName,
      ...(isCopiedLast(image) && { isLast: true }),
      contents: image.contents,
    };
  });
}

function getSource({ source, contents }: LockedImage): Reference {
  return { ...parseReference(source), digest: contents.root.digest };
}

function getTarget(
  { repository, tag, contents }: LockedImage,
  text: string,
  target: MirrorTarget,
): RegistryReference {
  const registry = target.registry === '' ? 'localhost' : target.registry;
  const path = pathBelow(target, repository);
  if (registry.length + 1 + path.length > maxNameLength) {
    throw new OpmateError('INVALID', `longer than the ${maxNameLength} characters that a name may have`, {
      subject: text,
      hint: 'mirror to a shorter path',
    });
  }
  const version = tag === undefined ? { digest: contents.root.digest } : { tag };
  return { transport: 'docker', text, registry, repository: path, ...version };
}
