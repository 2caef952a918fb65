import type { CancelOptions } from '../../core/concurrency.js';
import { CancelledError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { Reference } from '../../core/reference.js';
import { atomicSignatureType, parseSimpleSigning, requireSignedDigest } from '../../trust/simple-signing.js';
import { verifySignedMessage } from '../../trust/openpgp.js';
import {
  type PolicyRequirement,
  type PolicyRule,
  type SignaturePolicy,
  findRule,
} from '../../trust/policy.js';
import { findIdentityProblem } from '../../trust/signed-identity.js';
import { verifySigstoreSignature } from '../../trust/sigstore-signature.js';
import { type ImageContents } from '../image/contents.js';
import { isIndexType } from '../image/manifest.js';
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
 * Checks an image against a policy. Of an index, either itself or each of its images must be signed: release images are
 * signed per platform, and clients verify what they run. Throws only CancelledError: an unreadable signature is refused.
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
  for (const digest of imageManifests(contents)) {
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
  for (const digest of imageManifests(contents)) {
    if ((await readAttachedSignatures(repository, digest, options)).length === 0) return digest;
  }
  return undefined;
}

/** Returns the digests of the single-platform manifests of an image. */
function imageManifests({ root, manifests }: ImageContents): string[] {
  if (!isIndexType(root.mediaType)) return [root.digest];
  const listed = new Set(manifests.flatMap((manifest) => manifest.manifests));
  return manifests
    .map(({ descriptor }) => descriptor)
    .filter(({ digest, mediaType }) => listed.has(digest) && !isIndexType(mediaType))
    .map(({ digest }) => digest);
}

async function judge(
  repository: Repository,
  digest: string,
  { requirements, scope }: PolicyRule,
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
