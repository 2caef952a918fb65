import { countArchiveImages, readArchiveKey } from '../../api/images/archive-proof.js';
import { isDigest } from '../../core/digest.js';
import { invalidValue, UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { ArchiveIndex, ArchiveProof } from '../../oci/archive-set/archive-index.js';
import type { FlagValues } from '../command/flags.js';
import type { CommandContext } from '../context.js';
import { amountOfBytes, count } from '../printable.js';
import type { archiveProofFlags } from './flags.js';

/** Reads the ID and key that an archive must have. Throws UsageError, and OpmateError for an unreadable key. */
export async function readProof(
  { id, verifyKey }: Partial<FlagValues<typeof archiveProofFlags>>,
  context: CommandContext,
): Promise<ArchiveProof> {
  if (id !== undefined && !isDigest(id)) {
    const hint = 'use the ID that opmate mirror printed for the archive: sha256:…';
    throw invalidValue('--id', id, 'not an archive ID', { hint });
  }
  if (verifyKey === undefined) return { id };
  return { id, key: await readArchiveKey(verifyKey, context) };
}

/** Returns the directory of an archive, named as `DIRECTORY` or `file://DIRECTORY`. Throws UsageError. */
export function getArchiveDirectory(text: string): string {
  const directory = text.replace(/^file:\/\//, '');
  if (directory !== '' && !/^[a-z][a-z0-9+.-]*:\/\//.test(directory)) return directory;
  throw new UsageError(`${quoteGo(text)}: not a directory`, { hint: 'use file://DIRECTORY, or DIRECTORY' });
}

/** Returns the bytes of the parts of an archive. */
export function getArchiveBytes({ parts }: Pick<ArchiveIndex, 'parts'>): number {
  return parts.reduce((sum, { size }) => sum + size, 0);
}

/** Returns the amounts of an archive for messages; its files are manifests and blobs. */
export function formatArchiveAmounts(index: ArchiveIndex): string {
  const { parts, blobs } = index;
  const amounts = [
    count(countArchiveImages(index), 'image'),
    count(parts.length, 'part'),
    count(blobs.size, 'file'),
  ];
  return [...amounts, amountOfBytes(getArchiveBytes(index))].join(', ');
}
