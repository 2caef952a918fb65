import { isDigest } from '../../core/digest.js';
import { invalidValue, UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { ArchiveProof } from '../../oci/archive-set/archive-index.js';
import { parseVerificationKey } from '../../trust/signing-key.js';
import type { FlagValues } from '../command/flags.js';
import type { CommandContext } from '../context.js';
import type { archiveProofFlags } from './flags.js';
import { readInputFile } from '../../files/read-file.js';

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
  const pem = await readInputFile(verifyKey, context);
  return { id, key: parseVerificationKey(pem, verifyKey) };
}

/** Returns the directory of an archive, named as `DIRECTORY` or `file://DIRECTORY`. Throws UsageError. */
export function getArchiveDirectory(text: string): string {
  const directory = text.replace(/^file:\/\//, '');
  if (directory !== '' && !/^[a-z][a-z0-9+.-]*:\/\//.test(directory)) return directory;
  throw new UsageError(`${quoteGo(text)}: not a directory`, { hint: 'use file://DIRECTORY, or DIRECTORY' });
}
