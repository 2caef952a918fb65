import path from 'node:path';
import { isDigest } from '../../core/digest.js';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { ArchiveProof } from '../../oci/archive-set/archive-index.js';
import { parseVerificationKey } from '../../trust/signing-key.js';
import type { FlagValues } from '../command/flags.js';
import type { CommandContext } from '../context.js';
import type { archiveProofFlags } from './flags.js';
import { readInputFile } from '../../files/read-file.js';

/** What the flags say of an archive that is to be read. Throws UsageError, and OpmateError for a key. */
export async function readProof(
  { id, verifyKey }: Partial<FlagValues<typeof archiveProofFlags>>,
  { workingDirectory }: CommandContext,
): Promise<ArchiveProof> {
  if (id !== undefined && !isDigest(id)) {
    const hint = 'use the ID that opmate mirror printed for the archive: sha256:…';
    throw new UsageError(`--id ${quoteGo(id)}: not an archive ID`, { hint });
  }
  if (verifyKey === undefined) return { id };
  const pem = await readInputFile(path.resolve(workingDirectory, verifyKey));
  return { id, key: parseVerificationKey(pem, verifyKey) };
}

/** The place of an archive, absolute: a path, with or without `file://` before it. Throws UsageError. */
export function getArchiveDirectory(text: string, { workingDirectory }: CommandContext): string {
  const place = text.startsWith('file://') ? text.slice('file://'.length) : text;
  if (place !== '' && !/^[a-z][a-z0-9+.-]*:\/\//.test(place)) return path.resolve(workingDirectory, place);
  throw new UsageError(`${quoteGo(text)}: not a directory`, { hint: 'use file://DIRECTORY, or DIRECTORY' });
}
