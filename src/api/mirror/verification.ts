import { count } from '../../core/printable.js';
import { parseReference } from '../../core/reference.js';
import type { ImageSetMirror } from '../../mirror/image-set/image-set-mirror.js';
import { type ImageSetLock, type LockedImage, getLockedName, withoutHeld } from '../../mirror/lock/lock.js';
import { readLookasideSignatures, readLookasides } from '../../mirror/verification/lookaside.js';
import { readSignaturePolicy } from '../../mirror/verification/signature-policy.js';
import {
  type VerifiedSet,
  type VerifyLockOptions,
  getRefusals,
  requireVerified,
  verifyLock,
  withVerdicts,
} from '../../mirror/verification/verify-lock.js';
import { holdOpen, openReference } from '../../oci/image/open.js';
import type { Repository } from '../../oci/registry/repository.js';
import type { Verdict } from '../../oci/signatures/verify-image.js';
import type { Session } from '../../source/session.js';
import type { ImageSetRun } from './image-set-run.js';

/** Verifies a prepared set at its sources, and keeps the verdicts for its lock. Throws OpmateError in strict runs. */
export async function verifySources(run: ImageSetRun, mirror: ImageSetMirror): Promise<void> {
  const sources = atSources(run.session);
  const verdicts = await judge(run, () => withoutHeld(mirror.lock('', {})), {
    ...sources,
    open: (image, digest) => mirror.getOpener(image)?.() ?? sources.open(image, digest),
  });
  if (verdicts !== undefined) mirror.keepVerdicts(verdicts);
}

/** Verifies the images of a lock at their sources, and returns the lock with the verdicts. */
export async function verifyLocked(run: ImageSetRun, lock: ImageSetLock): Promise<ImageSetLock> {
  const verdicts = await judge(run, () => withoutHeld(lock), atSources(run.session));
  return verdicts === undefined ? lock : withVerdicts(lock, verdicts);
}

/** Verifies the images of an archive by its content, without requests to their sources. */
export async function verifyArchived(
  run: ImageSetRun,
  lock: ImageSetLock,
  getRepository: (name: string) => Repository,
): Promise<void> {
  const digests = new Map(
    lock.images.map(({ repository, tag, contents }) => [`${repository}:${tag ?? ''}`, contents.root.digest]),
  );
  const open = ({ repository: name }: LockedImage, digest: string) => {
    const repository = getRepository(name);
    // Content of the base archive has no tags.
    const findDigest = (reference: string): string => digests.get(`${name}:${reference}`) ?? reference;
    const tagged: Repository = {
      ...repository,
      getManifest: (reference, options) => repository.getManifest(findDigest(reference), options),
      headManifest: (reference, options) => repository.headManifest(findDigest(reference), options),
    };
    return Promise.resolve(holdOpen({ repository: tagged, digest }));
  };
  await judge(run, () => lock, { open });
}

type Openers = Pick<VerifyLockOptions, 'open' | 'openCatalog'>;

function atSources(session: Session): Openers {
  return {
    open: ({ reference }, digest) => openReference({ ...parseReference(reference), digest }, session),
    openCatalog: (reference) => openReference(reference, session),
  };
}

/** Returns the verdicts by image; undefined for a run without a policy. */
async function judge(
  { options, session, transfer, onVerified }: ImageSetRun,
  getSet: () => VerifiedSet,
  openers: Openers,
): Promise<Map<string, Verdict> | undefined> {
  if (options.verification === undefined) return undefined;
  const { isStrict = true, registriesDirectory, ...request } = options.verification;
  const set = getSet();
  const policy = await readSignaturePolicy(request, session.workingDirectory, session);
  const lookasides =
    registriesDirectory === undefined
      ? new Map<string, string>()
      : await readLookasides(registriesDirectory, session.workingDirectory);
  const { logger, signal } = session;
  const verdicts = await verifyLock(set, {
    policy,
    signal,
    now: session.now(),
    maxPerRegistry: transfer.maxPerRegistry,
    ...openers,
    readOpenPgp: (reference, digest) => readLookasideSignatures(lookasides, reference, digest, session),
  });
  onVerified?.(
    set.images.map((image) => ({
      ...image,
      verification: verdicts.get(getLockedName(image)) ?? image.verification,
    })),
  );
  const refusals = getRefusals(set, verdicts);
  if (isStrict) requireVerified(refusals);
  for (const line of refusals) logger.log('warn', line);
  const accepted = verdicts.size - refusals.length;
  logger.log('info', `signatures: ${count(accepted, 'image')} verified or accepted, ${refusals.length} not`);
  return verdicts;
}
