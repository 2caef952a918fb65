import path from 'node:path';
import { UsageError } from '../../core/errors.js';
import type { ImageSetMirror } from '../../mirror/image-set/image-set-mirror.js';
import type { ImageSetLock, LockedImage } from '../../mirror/lock/lock.js';
import { readLookasideSignatures, readLookasides } from '../../mirror/verification/lookaside.js';
import { type PolicyRequest, readSignaturePolicy } from '../../mirror/verification/signature-policy.js';
import {
  type VerifiedSet,
  type VerifyLockOptions,
  refusalsOf,
  requireVerified,
  verifyLock,
  withVerdicts,
} from '../../mirror/verification/verify-lock.js';
import { parseReference } from '../../core/reference.js';
import { openReference } from '../../oci/image/open.js';
import type { Repository } from '../../oci/registry/repository.js';
import type { Verdict } from '../../oci/signatures/verify-image.js';
import type { CommandContext } from '../context.js';
import { count } from '../printable.js';
import { policyRequestOf } from '../root/policy-flags.js';
import type { CommandSession } from '../session.js';
import type { ImageSetOptions } from './flags.js';

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
  async verify(mirror: ImageSetMirror, session: CommandSession): Promise<void> {
    const set = mirror.lock('', {});
    mirror.keepVerdicts(await this.#judge(set, session, this.#atSources(session)));
  }

  /** Verifies the images of a lock at their sources, and returns the lock with the verdicts. */
  async verifyLocked(lock: ImageSetLock, session: CommandSession): Promise<ImageSetLock> {
    return withVerdicts(lock, await this.#judge(lock, session, this.#atSources(session)));
  }

  /** Verifies the images of an archive by what it holds: nothing is asked for at their sources. */
  async verifyArchived(
    lock: ImageSetLock,
    repositoryOf: (name: string) => Repository,
    session: CommandSession,
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
      const digestOf = (reference: string): string => tags.get(`${name}:${reference}`) ?? reference;
      const named: Repository = {
        name: repository.name,
        getManifest: (reference, options) => repository.getManifest(digestOf(reference), options),
        headManifest: (reference, options) => repository.headManifest(digestOf(reference), options),
        openBlob: (descriptor, options) => repository.openBlob(descriptor, options),
        hasBlob: (descriptor, options) => repository.hasBlob(descriptor, options),
        listTags: (options) => repository.listTags(options),
        listReferrers: (subject, options) => repository.listReferrers(subject, options),
      };
      return Promise.resolve({ repository: named, reference: digest, close: () => Promise.resolve() });
    };
    await this.#judge(lock, session, { open });
  }

  #atSources(session: CommandSession): Pick<VerifyLockOptions, 'open' | 'openCatalog'> {
    return {
      open: ({ reference }, digest) => openReference({ ...parseReference(reference), digest }, session),
      openCatalog: (reference) => openReference(reference, session),
    };
  }

  async #judge(
    set: VerifiedSet,
    session: CommandSession,
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
    const refusals = refusalsOf(set, verdicts);
    if (this.#isStrict) requireVerified(refusals);
    for (const line of refusals) logger.log('warn', line);
    const fine = count(verdicts.size - refusals.length, 'image');
    logger.log('info', `signatures: ${fine} verified or accepted, ${refusals.length} not`);
    return verdicts;
  }
}

/** Reads `--verify` and the flags of the policy; strict where only a policy is given. Throws UsageError. */
export function readVerification(
  options: ImageSetOptions,
  { workingDirectory }: CommandContext,
  maxPerRegistry: number,
): Verification | undefined {
  const request = policyRequestOf(options);
  const { verify = request === undefined ? 'off' : 'strict' } = options;
  if (verify === 'off') return undefined;
  if (request === undefined) {
    const hint = 'add --policy, --key, or --certificate-identity with --trusted-root';
    throw new UsageError(`--verify ${verify}: no signature policy`, { hint });
  }
  if (options.removeSignatures === true && options.from === undefined) {
    const hint = 'leave one of them out: the far side could not verify again';
    throw new UsageError('--verify and --remove-signatures cannot be used together', { hint });
  }
  const directory = options['registries.d'];
  const registriesDirectory = directory === undefined ? undefined : path.resolve(workingDirectory, directory);
  return new Verification(request, { isStrict: verify === 'strict', registriesDirectory, maxPerRegistry });
}
