import type { ImageContents } from '../../oci/image/contents.js';
import { findSubjectOfTag } from '../../oci/signatures/attached-signatures.js';
import type { LockedImage } from '../lock/lock.js';
import { getTargetName } from '../lock/lock-plan.js';
import type { MirrorTarget } from '../naming/mirror-target.js';
import type { SetImage } from '../plan/planned-image.js';
import type { ImageSetPlan } from './image-set-plan.js';

/** Images of a plan that the target is known to have. */
export interface MirroredImages {
  contents: ReadonlyMap<SetImage | undefined, ImageContents>;
  /** Signatures of these, by name at the target. */
  signatures: ReadonlyMap<string, LockedImage>;
}

/** Returns the planned images that `mirrored`, such as the lock of an earlier run, shows to be at the target. */
export function findMirrored(
  { images }: ImageSetPlan,
  mirrored: readonly LockedImage[],
  target: MirrorTarget,
): MirroredImages {
  const byName = new Map(mirrored.map((image) => [getTargetName(image, target), image]));
  const contents = new Map<SetImage | undefined, ImageContents>();
  for (const image of images) {
    const locked = byName.get(image.destination);
    const isSame = locked?.kind === image.kind && locked.reference === image.reference.text;
    const { digest = locked?.contents.root.digest } = image.reference;
    // A rebuilt catalog has another digest than its source, and changes with the images that it names.
    if (isSame && locked.contents.root.digest === digest) contents.set(image, locked.contents);
  }
  const subjects = new Set(
    [...contents.values()].flatMap(({ manifests }) => manifests.map(({ descriptor }) => descriptor.digest)),
  );
  const signatures = [...byName].filter(
    ([, { kind, tag }]) => kind === 'signature' && subjects.has(findSubjectOfTag(tag) ?? ''),
  );
  return { contents, signatures: new Map(signatures) };
}
