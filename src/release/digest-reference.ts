import { type RegistryReference, parseReference } from '../core/reference.js';
import type { Field } from '../document/field.js';

/** An image in a registry by digest. */
export type DigestReference = RegistryReference & { digest: string };

/** Reads an image reference that must have a registry and a digest. */
export function readDigestReference(field: Field<never>): DigestReference {
  const image = field.parsed(parseReference);
  const { digest } = image;
  if (image.transport === 'docker' && digest !== undefined) return { ...image, digest };
  return field.mismatch('an image in a registry by digest');
}
