import { readInputFile } from '../../files/read-file.js';
import { parseLock } from '../../mirror/lock/parse-lock.js';
import type { ArchiveIndex, ArchiveProof } from '../../oci/archive-set/archive-index.js';
import type { Session } from '../../source/session.js';
import { parseVerificationKey } from '../../trust/signing-key.js';

/** Reads the public key, a PEM file, that must have signed an archive. Throws OpmateError. */
export async function readArchiveKey(
  file: string,
  session: Pick<Session, 'workingDirectory' | 'signal'>,
): Promise<Exclude<ArchiveProof['key'], undefined>> {
  return parseVerificationKey(await readInputFile(file, session), file);
}

/** Returns the number of images in the lock of an archive; the index also lists signatures and other referrers of each. */
export function countArchiveImages({ lock, images }: ArchiveIndex): number {
  try {
    return parseLock(lock, 'the lock of the archive', 'reference').images.length;
  } catch {
    // It has the lock of a later version, or none.
    return images.length;
  }
}
