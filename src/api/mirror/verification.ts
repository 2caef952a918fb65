import { parseReference } from '../../core/reference.js';
import type { ImageSetMirror } from '../../mirror/image-set/image-set-mirror.js';
import type { ImageSetLock, LockedImage } from '../../mirror/lock/lock.js';
import { readLookasideSignatures, readLookasides } from '../../mirror/verification/lookaside.js';
import { type PolicyRequest, readSignaturePolicy } from '../../mirror/verification/signature-policy.js';
import {
  type VerifiedSet,
  type VerifyLockOptions,
  getRefusals,
  requireVerified,
  verifyLock,
  withVerdicts,
} from '../../mirror/verification/verify-lock.js';
import { holdOpen, openReference } from '../../oci/image/open.js';
import { withReads } from '../../oci/registry/replaced-reads.js';
import type { Repository } from '../../oci/registry/repository.js';
import type { Verdict } from '../../oci/signatures/verify-image.js';
import type { Session } from '../../source/session.js';

/** Verification of the images of one run, before anything is copied. */
export class Verification {
  readonly #request: PolicyRequest;
  readonly #isStrict: boolean;
  readonly #registriesDirectory: string | undefined;
  readonly #maxPerRegistry: number;

  constructor(
    request: PolicyRequest,
    options: { isStrict: boolean; registriesDirectory: string | undefined; maxPerRegistry: number },
  ) {
    this.#request = request;
    this.#isStrict = options.isStrict;
    this.#registriesDirectory = options.registriesDirectory;
    this.#maxPerRegistry = options.maxPerRegistry;
  }

  /** Verifies a prepared set at its sources, and keeps the verdicts for its lock. Throws in strict runs. */
  async verify(mirror: ImageSetMirror, session: Session): Promise<void> {
    const set = mirror.lock('', {});
    mirror.keepVerdicts(await this.#judge(set, session, this.#atSources(session)));
  }

  /** Verifies the images of a lock at their sources, and returns the lock with the verdicts. */
  async verifyLocked(lock: ImageSetLock, session: Session): Promise<ImageSetLock> {
    return withVerdicts(lock, await this.#judge(lock, session, this.#atSources(session)));
  }

  /** Verifies the images of an archive by what it holds: nothing is asked for at their sources. */
  async verifyArchived(
    lock: ImageSetLock,
    repositoryOf: (name: string) => Repository,
    session: Session,
  ): Promise<void> {
    const tags = new Map(
      lock.images.map(({ repository, tag, contents }) => [
        `${repository}:${tag ?? ''}`,
        contents.root.digest,
      ]),
    );
    const open = ({ repository: name }: LockedImage, digest: string) => {
      const repository = repositoryOf(name);
      // What the base of the archive holds has no tag in it.
      const computeDigest = (reference: string): string => tags.get(`${name}:${reference}`) ?? reference;
      const named = withReads(repository, {
        getManifest: (reference, options) => repository.getManifest(computeDigest(reference), options),
        headManifest: (reference, options) => repository.headManifest(computeDigest(reference), options),
      });
      return Promise.resolve(holdOpen({ repository: named, digest }));
    };
    await this.#judge(lock, session, { open });
  }

  #atSources(session: Session): Pick<VerifyLockOptions, 'open' | 'openCatalog'> {
    return {
      open: ({ reference }, digest) => openReference({ ...parseReference(reference), digest }, session),
      openCatalog: (reference) => openReference(reference, session),
    };
  }

  async #judge(
    set: VerifiedSet,
    session: Session,
    places: Pick<VerifyLockOptions, 'open' | 'openCatalog'>,
  ): Promise<Map<string, Verdict>> {
    const policy = await readSignaturePolicy(this.#request, session.workingDirectory);
    const directory = this.#registriesDirectory;
    const lookasides = directory === undefined ? new Map<string, string>() : await readLookasides(directory);
    const { logger, signal } = session;
    const verdicts = await verifyLock(set, {
      ...{ policy, signal, now: session.now(), maxPerRegistry: this.#maxPerRegistry, ...places },
      readOpenPgp: (reference, digest) => readLookasideSignatures(lookasides, reference, digest, session),
    });
    const refusals = getRefusals(set, verdicts);
    if (this.#isStrict) requireVerified(refusals);
    for (const line of refusals) logger?.log('warn', line);
    const fine = verdicts.size - refusals.length;
    const images = fine === 1 ? '1 image' : `${fine} images`;
    logger?.log('info', `signatures: ${images} verified or accepted, ${refusals.length} not`);
    return verdicts;
  }
}
