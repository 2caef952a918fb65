import { OpmateError } from '../../core/errors.js';
import { withReads } from '../registry/replaced-reads.js';
import type { Repository } from '../registry/repository.js';

/** What a run has read of signatures and referrers at sources, by repository, kind and reference. */
export type SignatureReads = Map<string, Promise<unknown>>;

/** Tags under which signatures and what else is attached to an image are kept. */
const attachedTag = /^sha(?:256|384|512)-[0-9a-f]+\.(?:sig|att|sbom)$/;

/** The same repository, of which what is attached to images is read once in a run: to be verified and to be copied. */
export function withRememberedSignatures<R extends Repository>(repository: R, reads: SignatureReads): R {
  function once<T>(key: string, read: () => Promise<T>): Promise<T> {
    const known = reads.get(key);
    if (known !== undefined) return known as Promise<T>;
    const reading = read();
    reads.set(key, reading);
    reading.catch((error: unknown) => {
      // What is not there stays so for the run; after any other failure it is asked for again.
      if (!(error instanceof OpmateError) || error.code !== 'NOT_FOUND') reads.delete(key);
    });
    return reading;
  }
  const { name } = repository;
  return withReads(repository, {
    getManifest(reference, options) {
      const read = () => repository.getManifest(reference, options);
      return attachedTag.test(reference) ? once(`${name} tag ${reference}`, read) : read();
    },
    listReferrers(digest, options) {
      const read = () => repository.listReferrers(digest, options);
      return options?.artifactType === undefined ? once(`${name} referrers ${digest}`, read) : read();
    },
  });
}
