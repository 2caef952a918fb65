import { type CancelOptions, mapConcurrent, withOpen } from '../../core/concurrency.js';
import { ErrorList } from '../../core/diagnostics-error.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import {
  compareOpenShift,
  formatOpenShift,
  openShiftMilestones,
  readOpenShiftVersion,
} from '../../core/openshift-version.js';
import { type Reference, parseReference } from '../../core/reference.js';
import { readContents } from '../../oci/image/contents.js';
import type { OpenedReference } from '../../oci/image/open.js';
import {
  type Verdict,
  findUnsignedManifest,
  isAccepted,
  verifyImage,
} from '../../oci/signatures/verify-image.js';
import type { SignaturePolicy } from '../../trust/policy.js';
import { isImageFailure } from '../transfer/transfer-step.js';
import { type ImageSetLock, type LockedCatalog, type LockedImage, getLockedName } from '../lock/lock.js';

/** The parts of a lock with verdicts. */
export type VerifiedSet = Pick<ImageSetLock, 'images' | 'catalogs' | 'releases'>;

/** Options of verifying a lock. */
export interface VerifyLockOptions extends CancelOptions {
  policy: SignaturePolicy;
  now: Date;
  maxPerRegistry: number;
  /** Opens an image by digest, with the tags of its signatures. */
  open: (image: LockedImage, digest: string) => Promise<OpenedReference>;
  /** Opens the source of a filtered catalog; without it the verdict in the lock is used. */
  openCatalog?: ((reference: Reference) => Promise<OpenedReference>) | undefined;
  readOpenPgp: (reference: Reference, digest: string) => Promise<Buffer[]>;
}

/**
 * Verifies each image of a set by a policy, with the name of its source; a filtered catalog by its source. Charts and
 * graph images, which opmate builds, are accepted. Returns verdicts by name in the lock, without signatures. Throws
 * CancelledError.
 */
export async function verifyLock(
  { images, catalogs, releases }: VerifiedSet,
  options: VerifyLockOptions,
): Promise<Map<string, Verdict>> {
  const rebuilt = new Map<string, LockedCatalog>(
    catalogs
      .filter(({ isWhole }) => !isWhole)
      .map((catalog) => [`${catalog.repository}:${catalog.tag}`, catalog] as const),
  );
  const needsSignature = releases?.releases.some(({ version }) => requiresSignatures(version)) ?? false;
  const verified = images.filter(({ kind }) => kind !== 'signature');
  const verdicts = await mapConcurrent(
    verified,
    options.maxPerRegistry,
    async (image): Promise<Verdict> => {
      if (image.kind === 'chart' || image.kind === 'graph')
        return { status: 'accepted', reason: 'made by opmate' };
      const catalog = image.kind === 'catalog' ? rebuilt.get(getLockedName(image)) : undefined;
      try {
        if (catalog !== undefined) return await verifyFiltered(image, catalog.sourceDigest, options);
        const { digest } = image.contents.root;
        const reference = { ...parseReference(image.reference), digest };
        const isOfRelease = needsSignature && (image.kind === 'release' || image.kind === 'component');
        return await withOpen(options.open(image, digest), ({ repository }) =>
          verifyContents(reference, repository, image.contents, { ...options, isOfRelease }),
        );
      } catch (error) {
        throwIfCancelled(options.signal);
        if (!isImageFailure(error)) throw error;
        return { status: 'refused', reason: error.message };
      }
    },
    options,
  );
  return new Map(verified.map((image, index) => [getLockedName(image), verdicts[index] as Verdict]));
}

async function verifyFiltered(
  image: LockedImage,
  sourceDigest: string,
  options: VerifyLockOptions,
): Promise<Verdict> {
  if (options.openCatalog === undefined) {
    const known = image.verification;
    if (known === undefined) return { status: 'unsigned', reason: 'rebuilt; its source was not verified' };
    return {
      ...known,
      reason: known.reason.startsWith('rebuilt') ? known.reason : `rebuilt; ${known.reason}`,
    };
  }
  const reference = { ...parseReference(image.reference), digest: sourceDigest };
  const verdict = await withOpen(options.openCatalog(reference), async ({ repository }) => {
    const contents = await readContents(repository, sourceDigest, options);
    return verifyContents(reference, repository, contents, options);
  });
  return { ...verdict, reason: `rebuilt from ${sourceDigest}: ${verdict.reason}` };
}

/**
 * Reports whether clusters of a version require cosign signatures of release images, by the ClusterImagePolicy
 * `openshift`. OKD does not.
 */
function requiresSignatures(version: string): boolean {
  const parsed = readOpenShiftVersion(version);
  if (parsed === undefined || version.includes('okd')) return false;
  return compareOpenShift(parsed, openShiftMilestones.signedReleases) >= 0;
}

async function verifyContents(
  reference: Reference,
  repository: OpenedReference['repository'],
  contents: LockedImage['contents'],
  { policy, now, signal, readOpenPgp, isOfRelease = false }: VerifyLockOptions & { isOfRelease?: boolean },
): Promise<Verdict> {
  const verdict = await verifyImage(repository, contents, {
    policy,
    reference,
    now,
    signal,
    readOpenPgp: (digest) => readOpenPgp(reference, digest),
  });
  if (!isOfRelease || verdict.status !== 'accepted') return verdict;
  const unsigned = await findUnsignedManifest(repository, contents, { signal });
  if (unsigned === undefined) return verdict;
  const firstSigned = formatOpenShift(openShiftMilestones.signedReleases);
  const reason = `no signature of ${unsigned}, which clusters require of releases from ${firstSigned} on`;
  return { status: 'unsigned', reason };
}

/** Adds verdicts to a set. */
export function withVerdicts<S extends VerifiedSet>(set: S, verdicts: ReadonlyMap<string, Verdict>): S {
  return {
    ...set,
    images: set.images.map((image) => {
      const verification = image.kind === 'signature' ? undefined : verdicts.get(getLockedName(image));
      return verification === undefined ? image : { ...image, verification };
    }),
  };
}

/** Returns a line for each image that is neither verified nor accepted. */
export function getRefusals({ images }: VerifiedSet, verdicts: ReadonlyMap<string, Verdict>): string[] {
  return images.flatMap((image) => {
    const verdict = image.kind === 'signature' ? undefined : verdicts.get(getLockedName(image));
    return verdict === undefined || isAccepted(verdict)
      ? []
      : [`${image.reference}: ${verdict.status}: ${verdict.reason}`];
  });
}

/** Throws OpmateError INVALID with all refused images. */
export function requireVerified(refusals: readonly string[]): void {
  const errors = new ErrorList();
  const hint =
    'sign the image, accept it in the policy, or mirror with options.verification report; nothing was copied';
  for (const line of refusals) errors.add(new OpmateError('INVALID', line, { hint }));
  errors.throwIfAny();
}
