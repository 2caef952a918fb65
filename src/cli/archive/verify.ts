import path from 'node:path';
import { OpmateError, UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import {
  type ArchiveFault,
  type ArchiveIndex,
  archiveIndexName,
  readArchiveIndex,
  verifyArchiveSet,
} from '../../oci/archive-set/archive-set.js';
import { type ArchiveProofFlags, archiveDirectoryOf, proofOf } from './options.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { createLogger } from '../logger.js';
import { writeAll } from '../output.js';
import { count } from '../printable.js';

interface ArchiveVerifyOptions extends GlobalOptions, ArchiveProofFlags {
  output?: string;
}

/**
 * `opmate archive verify DIR`: reads all of an archive. Says on stdout that it is sound, or each fault on stderr;
 * with `-o json` the verdict is data on stdout. Exit code 3 when it is damaged, 1 when it is not the one that `--id` or
 * `--verify-key` wants.
 */
export async function archiveVerify(
  context: CommandContext,
  directory: string,
  options: ArchiveVerifyOptions,
): Promise<number> {
  const { output = 'text' } = options;
  if (output !== 'text' && output !== 'json') {
    throw new UsageError(`invalid --output value ${quoteGo(output)}, expected (text|json)`);
  }
  const place = archiveDirectoryOf(directory, context);
  const proof = await proofOf(options, context);
  const logger = createLogger(context, options);
  let index: ArchiveIndex | undefined;
  let faults: ArchiveFault[];
  try {
    index = await readArchiveIndex(place, proof);
    faults = await verifyArchiveSet(place, { logger, proof, signal: context.signal });
  } catch (error) {
    const isDamaged = error instanceof OpmateError && damages.has(error.code);
    if (!isDamaged || index !== undefined) throw error;
    faults = [
      {
        file: archiveIndexName,
        message: error.message.replace(`${path.join(place, archiveIndexName)}: `, ''),
      },
    ];
  } finally {
    logger.close();
  }
  if (output === 'json') {
    await writeAll(context.stdout, `${JSON.stringify(describe(index, faults), undefined, 2)}\n`);
  } else if (faults.length > 0) {
    for (const { file, digest, message } of faults) {
      const blob = digest === undefined ? '' : `${digest}: `;
      logger.log('error', `${path.join(directory, file)}: ${blob}${message}`);
    }
  } else if (index !== undefined) {
    const { id, base, parts, blobs, bytes, images } = describe(index, faults);
    const amounts = `${count(parts, 'part')}, ${count(images, 'image')}, ${count(blobs, 'blob')}, ${bytes} bytes`;
    await writeAll(context.stdout, `${id}: ${amounts}: sound\n`);
    if (base !== undefined) logger.log('info', `it needs ${base}, which is an archive of its own`);
  }
  return faults.length === 0 ? exitCodes.done : exitCodes.findings;
}

/** An index that can be read and is wrong is damage; one that cannot be read says nothing about the archive. */
const damages: ReadonlySet<string> = new Set(['SYNTAX', 'INVALID', 'LIMIT']);

function describe(index: ArchiveIndex | undefined, faults: readonly ArchiveFault[]) {
  return {
    id: index?.id,
    base: index?.base,
    parts: index?.parts.length ?? 0,
    blobs: index?.blobs.size ?? 0,
    bytes: (index?.parts ?? []).reduce((sum, { size }) => sum + size, 0),
    images: index?.images.length ?? 0,
    faults,
  };
}
