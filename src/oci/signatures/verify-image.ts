import type { CancelOptions } from '../../core/concurrency.js';
import { CancelledError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { Reference } from '../../core/reference.js';
import { atomicSignatureType, parseSimpleSigning, requireSignedDigest } from '../../trust/simple-signing.js';
import { verifySignedMessage } from '../../trust/openpgp.js';
import {
  type PolicyRequirement,
  type SignatureRule,
  type SignaturePolicy,
  findRule,
} from '../../trust/policy.js';
import { findIdentityProblem } from '../../trust/signed-identity.js';
import { verifySigstoreSignature } from '../../trust/sigstore-signature.js';
import { type ImageContents } from '../image/contents.js';
import { isIndexType, parseManifest } from '../image/manifest.js';
import { getSubject } from '../image/platform.js';
import type { Repository } from '../registry/repository.js';
import { readAttachedSignatures } from './attached-signatures.js';

/**
 * - `verified`: signatures meet all requirements of the rule
 * - `accepted`: the rule accepts any image
 * - `unsigned`: the rule requires a signature, and the image has none
 * - `refused`: the rule rejects the image, or no signature meets it
 */
export const verificationStatuses = ['verified', 'accepted', 'unsigned', 'refused'] as const;

/** Decision of a policy about an image. */
export interface Verdict {
  status: (typeof verificationStatuses)[number];
  /** One line. */
  reason: string;
}

/** Reports whether a verdict allows an image. */
export function isAccepted({ status }: Verdict): boolean {
  return status === 'verified' || status === 'accepted';
}

interface VerifyImageOptions extends CancelOptions {
  policy: SignaturePolicy;
  /** Name for the policy; for a mirrored image that of its source. */
  reference: Reference;
  /** Time at which OpenPGP keys and signatures must be valid. */
  now: Date;
  /** Reads the OpenPGP signatures of a manifest; default: none. */
  readOpenPgp?: ((digest: string) => Promise<Buffer[]>) | undefined;
}

/**
 * Checks an image against a policy. Of an index, either itself or each of its entries must be signed: release images are
 * signed per platform, and clients verify what they run. Throws CancelledError, and the errors of reading indexes; an
 * unreadable signature is refused.
 */
export async function verifyImage(
  repository: Repository,
  contents: ImageContents,
  options: VerifyImageOptions,
): Promise<Verdict> {
  const rule = findRule(options.policy, options.reference);
  const verdict = await judge(repository, contents.root.digest, rule, options);
  if (verdict.status === 'verified' || verdict.status === 'accepted') return verdict;
  if (!isIndexType(contents.root.mediaType)) return verdict;
  let first: Verdict | undefined;
  for (const digest of await listImages(repository, contents, options)) {
    const own = await judge(repository, digest, rule, options);
    if (own.status !== 'verified') return { ...own, reason: `${digest}: ${own.reason}` };
    first ??= own;
  }
  return first === undefined ? verdict : { ...first, reason: `${first.reason}, each image of the index` };
}

/**
 * Returns the digest of the first single-platform manifest without a cosign signature of any key; undefined if all have
 * one. Throws the errors of reading manifests.
 */
export async function findUnsignedManifest(
  repository: Repository,
  contents: ImageContents,
  options: CancelOptions,
): Promise<string | undefined> {
  for (const digest of await listImages(repository, contents, options)) {
    if ((await readAttachedSignatures(repository, digest, options)).length === 0) return digest;
  }
  return undefined;
}

/**
 * Returns the digests of all entries of an image's indexes, or of the image itself. Indexes are read again, as their
 * manifests are what clients choose from: known contents may come from a lock that lacks entries.
 */
async function listImages(
  repository: Repository,
  { root, manifests }: ImageContents,
  options: CancelOptions,
): Promise<string[]> {
  if (!isIndexType(root.mediaType)) return [root.digest];
  const known = new Map(manifests.map((manifest) => [manifest.descriptor.digest, manifest]));
  const listed = new Set([root.digest]);
  const images: string[] = [];
  // A set is iterated with what is added meanwhile, and each digest once.
  for (const digest of listed) {
    const manifest = known.get(digest);
    const isIndex = manifest !== undefined && isIndexType(manifest.descriptor.mediaType);
    if (!isIndex) {
      images.push(digest);
      continue;
    }
    const bytes = manifest.bytes ?? (await repository.getManifest(digest, options)).bytes;
    const subject = getSubject(repository.name, digest);
    const parsed = parseManifest(bytes, { subject, mediaType: manifest.descriptor.mediaType });
    if (parsed.kind === 'index') for (const entry of parsed.index.manifests) listed.add(entry.digest);
  }
  return images;
}

async function judge(
  repository: Repository,
  digest: string,
  { requirements, scope }: SignatureRule,
  options: VerifyImageOptions,
): Promise<Verdict> {
  const reasons: string[] = [];
  for (const requirement of requirements) {
    const verdict = await meet(requirement, repository, digest, options);
    if (verdict.status !== 'verified' && verdict.status !== 'accepted') {
      return { ...verdict, reason: `${verdict.reason} (scope ${scope})` };
    }
    if (verdict.status === 'verified') reasons.push(verdict.reason);
  }
  if (reasons.length > 0) return { status: 'verified', reason: reasons.join(', ') };
  return { status: 'accepted', reason: `the policy accepts any image (scope ${scope})` };
}

async function meet(
  requirement: PolicyRequirement,
  repository: Repository,
  digest: string,
  options: VerifyImageOptions,
): Promise<Verdict> {
  if (requirement.type === 'insecureAcceptAnything') return { status: 'accepted', reason: '' };
  if (requirement.type === 'reject') return { status: 'refused', reason: 'the policy rejects the image' };
  try {
    return requirement.type === 'signedBy'
      ? await meetSignedBy(requirement, digest, options)
      : await meetSigstoreSigned(requirement, repository, digest, options);
  } catch (error) {
    throwIfCancelled(options.signal);
    if (!(error instanceof OpmateError) || error instanceof CancelledError || error.code === 'INTERNAL')
      throw error;
    return { status: 'refused', reason: `signatures unavailable: ${error.message}` };
  }
}

async function meetSigstoreSigned(
  { signer, identity }: Extract<PolicyRequirement, { type: 'sigstoreSigned' }>,
  repository: Repository,
  digest: string,
  options: VerifyImageOptions,
): Promise<Verdict> {
  const signatures = await readAttachedSignatures(repository, digest, options);
  return firstVerified(signatures, async (signature, subject) => {
    const claim = await verifySigstoreSignature(signature, signer, { digest, subject });
    requireIdentity(identity && findIdentityProblem(identity, options.reference, claim.reference), subject);
    return claim.signer === 'key' ? 'signed with the key' : `signed by ${claim.signer}`;
  });
}

async function meetSignedBy(
  { keyrings, identity }: Extract<PolicyRequirement, { type: 'signedBy' }>,
  digest: string,
  options: VerifyImageOptions,
): Promise<Verdict> {
  const signatures = (await options.readOpenPgp?.(digest)) ?? [];
  const keyring = { keys: keyrings.flatMap(({ keys }) => keys) };
  return firstVerified(signatures, async (signature, subject) => {
    const { content, keyId } = verifySignedMessage(signature, keyring, { subject, now: options.now });
    const signed = parseSimpleSigning(content, subject);
    if (signed.type !== atomicSignatureType) {
      throw new OpmateError('INVALID', `expected type "${atomicSignatureType}"`, { subject });
    }
    requireSignedDigest(signed, digest, subject);
    requireIdentity(findIdentityProblem(identity, options.reference, signed.reference), subject);
    return `signed with OpenPGP key ${keyId}`;
  });
}

function requireIdentity(problem: string | undefined, subject: string): void {
  if (problem !== undefined) throw new OpmateError('INVALID', problem, { subject });
}

/** Returns the verdict of the first valid signature, otherwise the problems of all. */
async function firstVerified<T>(
  signatures: readonly T[],
  verify: (signature: T, subject: string) => Promise<string>,
): Promise<Verdict> {
  if (signatures.length === 0) return { status: 'unsigned', reason: 'no signature' };
  const problems: string[] = [];
  for (const [index, signature] of signatures.entries()) {
    try {
      return { status: 'verified', reason: await verify(signature, `signature ${index + 1}`) };
    } catch (error) {
      if (!(error instanceof OpmateError) || error.code === 'INTERNAL') throw error;
      problems.push(error.message);
    }
  }
  return { status: 'refused', reason: problems.join('; ') };
}
