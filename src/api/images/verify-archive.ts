import path from 'node:path';
import { DiagnosticsError, diagnosticsFrom, renameDirectory } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import {
  type ArchiveIndex,
  type ArchiveProof,
  archiveIndexName,
  readArchiveIndex,
} from '../../oci/archive-set/archive-index.js';
import { type ArchiveDiagnostic, verifyArchiveSet } from '../../oci/archive-set/archive-verify.js';
import type { Session } from '../../source/session.js';

/** Options of verifying an archive. */
export interface VerifyArchiveOptions {
  /** ID and signature that the archive must have; default any. */
  proof?: ArchiveProof | undefined;
}

/** Result of verifying an archive. */
export interface VerifiedArchive {
  /** Undefined if it is damaged. */
  index: ArchiveIndex | undefined;
  /** Damaged, missing and unexpected content. Empty for an intact archive. */
  faults: ArchiveDiagnostic[];
}

/** Codes of an index that was read and is damaged; an index that cannot be read proves nothing about the archive. */
const damageCodes: ReadonlySet<string> = new Set(['SYNTAX', 'INVALID', 'LIMIT']);

/**
 * Reads every byte of the archive in `directory`, and reports all damaged, missing and unexpected content; its index too.
 * Throws OpmateError for an archive that is missing, cannot be read, or lacks the required `proof`.
 */
export async function verifyArchive(
  directory: string,
  session: Session,
  { proof = {} }: VerifyArchiveOptions = {},
): Promise<VerifiedArchive> {
  const archive = path.resolve(session.workingDirectory, directory);
  try {
    const index = await readArchiveIndex(archive, proof);
    const { logger, signal } = session;
    const faults = await verifyArchiveSet(archive, { logger, proof, signal });
    return { index, faults: faults.map((fault) => ({ ...fault, file: path.join(directory, fault.file) })) };
  } catch (thrown) {
    if (!(thrown instanceof OpmateError)) throw thrown;
    const error = archive === '/' ? thrown : renameDirectory(thrown, archive, directory);
    if (!damageCodes.has(error.code)) throw error;
    const file = path.join(directory, archiveIndexName);
    const code = 'invalid-index' as const;
    return {
      index: undefined,
      faults: diagnosticsFrom(error).map((diagnostic) => ({ ...diagnostic, code, file })),
    };
  }
}

/**
 * Runs `work` on archives. Content is verified as it is read: after a failure for damaged content, reads the archives
 * whole, and throws OpmateError DIGEST with all damage.
 */
export async function reportingAllDamage<T>(
  directories: readonly string[],
  session: Session,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof OpmateError) || error.code !== 'DIGEST') throw error;
    const hint = 'copy the damaged files again from the original archive, and repeat the command';
    const damage: ArchiveDiagnostic[] = [];
    for (const directory of directories) {
      session.logger?.log(
        'warn',
        `${directory}: damaged content; reading the whole archive to report all of it`,
      );
      const { faults } = await verifyArchive(directory, session);
      damage.push(
        ...faults.filter(({ code }) => code !== 'unexpected-file').map((fault) => ({ ...fault, hint })),
      );
    }
    if (damage.length === 0) throw error;
    throw new DiagnosticsError(damage, { code: 'DIGEST', cause: error });
  }
}
