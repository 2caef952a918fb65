import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import type { ReferrersOptions, Repository } from '../registry/repository.js';

/** Signatures and referrers of sources that a run has read, by repository, kind and reference. */
export type SignatureReads = Map<string, Promise<unknown>>;

/** Tags of cosign for content attached to an image. */
const attachedTag = /^sha(?:256|384|512)-[0-9a-f]+\.(?:sig|att|sbom)$/;

/** Returns the repository with attached content read once per run: for verification and for copying. */
export function withSignatureCache<R extends Repository>(repository: R, reads: SignatureReads): R {
  function once<T>(key: string, read: () => Promise<T>): Promise<T> {
    return getOrAdd(reads, key, () => {
      const reading = read();
      reading.catch((error: unknown) => {
        // Missing content stays missing for the run; other failures are tried again.
        if (!(error instanceof OpmateError) || error.code !== 'NOT_FOUND') reads.delete(key);
      });
      return reading;
    }) as Promise<T>;
  }
  const { name } = repository;
  return {
    ...repository,
    getManifest(reference: string, options?: CancelOptions) {
      const read = () => repository.getManifest(reference, options);
      return attachedTag.test(reference) ? once(`${name} tag ${reference}`, read) : read();
    },
    listReferrers(digest: string, options?: ReferrersOptions) {
      const read = () => repository.listReferrers(digest, options);
      return options?.artifactType === undefined ? once(`${name} referrers ${digest}`, read) : read();
    },
  };
}
