import { sortedByBytes } from '../../core/order.js';
import type { GateContent } from './gate-content.js';

/**
 * Returns the images of a fragment that the same packages of an index lack; bundles with the property `olm.deprecated`
 * and malformed digests are omitted.
 */
export function findUnreleasedImages(fragment: GateContent, index: GateContent): string[] {
  const packages = new Set(fragment.facts.packages.map(({ name }) => name));
  const collect = ({ bundles }: GateContent): string[] =>
    bundles
      .filter((bundle) => packages.has(bundle.package) && !bundle.isDeprecated)
      .flatMap(({ images }) => images)
      .filter((image) => image !== '' && (!image.includes('@') || /@sha256:[a-f0-9]{64}$/.test(image)));
  const released = new Set(collect(index));
  return sortedByBytes(new Set(collect(fragment).filter((image) => !released.has(image))));
}
