import { type Reference, findReference } from '../core/reference.js';

/**
 * Required relation between the reference in a signature and that of the image (containers-policy.json(5),
 * signedIdentity).
 */
export type SignedIdentity =
  | { type: 'matchExact' | 'matchRepoDigestOrExact' | 'matchRepository' }
  | { type: 'exactReference'; dockerReference: string }
  | { type: 'exactRepository'; dockerRepository: string }
  | { type: 'remapIdentity'; prefix: string; signedPrefix: string };

interface NamedImage {
  /** Name `host/path`: `quay.io/ns/name`. */
  repository: string;
  tag: string | undefined;
  digest: string | undefined;
}

/** Returns why the reference in a signature does not match that of the image; undefined if it does. */
export function findIdentityProblem(
  identity: SignedIdentity,
  image: Reference,
  stated: string | undefined,
): string | undefined {
  const signed = stated === undefined ? undefined : parseStated(stated);
  if (signed === undefined) return `no reference in the signature${stated ? `, but "${stated}"` : ''}`;
  const problem = `signed as ${stated}`;
  switch (identity.type) {
    case 'exactReference':
      return isSame(signed, parseStated(identity.dockerReference)) ? undefined : problem;
    case 'exactRepository':
      return signed.repository === parseStated(identity.dockerRepository)?.repository ? undefined : problem;
    default: {
      const own = findName(image);
      if (own === undefined) return 'the image has no name to compare with the signature';
      return matches(identity, own, signed) ? undefined : problem;
    }
  }
}

function matches(identity: SignedIdentity, own: NamedImage, signed: NamedImage): boolean {
  const wanted = identity.type === 'remapIdentity' ? remapped(own, identity) : own;
  if (identity.type === 'matchRepository') return wanted.repository === signed.repository;
  if (identity.type === 'matchExact') return isSame(wanted, signed);
  // A digest identifies the image, so any tag of the repository matches.
  return wanted.digest === undefined ? isSame(wanted, signed) : wanted.repository === signed.repository;
}

function remapped(
  own: NamedImage,
  { prefix, signedPrefix }: { prefix: string; signedPrefix: string },
): NamedImage {
  const isBelow = own.repository === prefix || own.repository.startsWith(`${prefix}/`);
  return isBelow ? { ...own, repository: `${signedPrefix}${own.repository.slice(prefix.length)}` } : own;
}

/** A reference without tag and digest is not exact. */
function isSame(a: NamedImage, b: NamedImage | undefined): boolean {
  if (b === undefined || a.repository !== b.repository) return false;
  if (a.digest !== undefined || b.digest !== undefined) return a.digest === b.digest;
  return a.tag !== undefined && a.tag === b.tag;
}

function findName(reference: Reference): NamedImage | undefined {
  if (reference.transport !== 'docker') return undefined;
  const { registry, repository, tag, digest } = reference;
  return { repository: `${registry}/${repository}`, tag, digest };
}

function parseStated(text: string): NamedImage | undefined {
  const reference = findReference(text);
  return reference && findName(reference);
}
