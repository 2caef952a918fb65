import { mapConcurrent, type CancelOptions } from '../../core/concurrency.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { CancelledError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import { type Reference, parseReference } from '../../core/reference.js';
import { readContents } from '../../oci/image/contents.js';
import type { OpenedReference } from '../../oci/image/open.js';
import {
  type Verdict,
  findUnsignedManifest,
  isFine,
  verifyImage,
} from '../../oci/signatures/verify-image.js';
import type { SignaturePolicy } from '../../trust/policy.js';
import { type ImageSetLock, type LockedCatalog, type LockedImage, getLockedName } from '../lock/lock.js';

/** The images of a set with the verdicts on them. */
export type VerifiedSet = Pick<ImageSetLock, 'images' | 'catalogs' | 'releases'>;

export interface VerifyLockOptions extends CancelOptions {
  policy: SignaturePolicy;
  now: Date;
  maxPerRegistry: number;
  /** Opens an image by digest, with the tags that its signatures are found by. */
  open: (image: LockedImage, digest: string) => Promise<OpenedReference>;
  /** Opens what a catalog was rebuilt from; without it the verdict of the lock is believed. */
  openCatalog?: ((reference: Reference) => Promise<OpenedReference>) | undefined;
  readOpenPgp: (reference: Reference, digest: string) => Promise<Buffer[]>;
}

/**
 * Judges each image of a set by a policy, under the name that its source has. Charts are made here and have no
 * signature; a catalog of which a part was taken is judged by the catalog that it was taken from. Returns verdicts by
 * the name in the lock, signatures left out. Throws CancelledError.
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
  const needsSignature = releases?.releases.some(({ version }) => isInstalledBySignature(version)) ?? false;
  const judged = images.filter(({ kind }) => kind !== 'signature');
  const verdicts = await mapConcurrent(
    judged,
    options.maxPerRegistry,
    async (image): Promise<Verdict> => {
      if (image.kind === 'chart' || image.kind === 'graph')
        return { status: 'accepted', reason: 'made by opmate' };
      const catalog = image.kind === 'catalog' ? rebuilt.get(getLockedName(image)) : undefined;
      try {
        if (catalog !== undefined) return await judgeRebuilt(image, catalog.sourceDigest, options);
        const { digest } = image.contents.root;
        const reference = { ...parseReference(image.reference), digest };
        const isOfRelease = needsSignature && (image.kind === 'release' || image.kind === 'component');
        const opened = await options.open(image, digest);
        return await judge(reference, opened, image.contents, { ...options, isOfRelease });
      } catch (error) {
        throwIfCancelled(options.signal);
        const isFatal = !(error instanceof OpmateError) || error instanceof CancelledError;
        if (isFatal || error.code === 'INTERNAL') throw error;
        return { status: 'refused', reason: error.message };
      }
    },
    options,
  );
  return new Map(judged.map((image, index) => [getLockedName(image), verdicts[index] as Verdict]));
}

async function judgeRebuilt(
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
  const opened = await options.openCatalog(reference);
  const contents = await readContents(opened.repository, sourceDigest, options);
  const verdict = await judge(reference, opened, contents, options);
  return { ...verdict, reason: `rebuilt from ${sourceDigest}: ${verdict.reason}` };
}

/**
 * Whether clusters of a version refuse their own images without a cosign signature: OpenShift from 4.21 on, whose
 * ClusterImagePolicy `openshift` names the repositories of releases. OKD has none.
 */
function isInstalledBySignature(version: string): boolean {
  const [, major = '0', minor = '0'] = /^(\d+)\.(\d+)\./.exec(version) ?? [];
  return !version.includes('okd') && (Number(major) > 4 || (Number(major) === 4 && Number(minor) >= 21));
}

async function judge(
  reference: Reference,
  opened: OpenedReference,
  contents: LockedImage['contents'],
  { policy, now, signal, readOpenPgp, isOfRelease = false }: VerifyLockOptions & { isOfRelease?: boolean },
): Promise<Verdict> {
  try {
    const verdict = await verifyImage(opened.repository, contents, {
      ...{ policy, reference, now, signal },
      readOpenPgp: (digest) => readOpenPgp(reference, digest),
    });
    const isToBeFound = isOfRelease && verdict.status === 'accepted';
    const unsigned = isToBeFound
      ? await findUnsignedManifest(opened.repository, contents, { signal })
      : undefined;
    if (unsigned === undefined) return verdict;
    const reason = `no signature of ${unsigned}, which clusters require of releases from 4.21 on`;
    return { status: 'unsigned', reason };
  } finally {
    await opened.close();
  }
}

/** Returns the same set with the verdicts in it. */
export function withVerdicts<S extends VerifiedSet>(set: S, verdicts: ReadonlyMap<string, Verdict>): S {
  return {
    ...set,
    images: set.images.map((image) => {
      const verification = image.kind === 'signature' ? undefined : verdicts.get(getLockedName(image));
      return verification === undefined ? image : { ...image, verification };
    }),
  };
}

/** Returns one line for each image that is neither verified nor accepted. */
export function getRefusals({ images }: VerifiedSet, verdicts: ReadonlyMap<string, Verdict>): string[] {
  return images.flatMap((image) => {
    const verdict = image.kind === 'signature' ? undefined : verdicts.get(getLockedName(image));
    return verdict === undefined || isFine(verdict)
      ? []
      : [`${image.reference}: ${verdict.status}: ${verdict.reason}`];
  });
}

/** Throws OpmateError INVALID that names every image that may not be copied. */
export function requireVerified(refusals: readonly string[]): void {
  if (refusals.length === 0) return;
  const hint = 'sign the image, accept it in the policy, or mirror with --verify report; nothing was copied';
  throw combineErrors(refusals.map((line) => new OpmateError('INVALID', line, { hint })));
}
