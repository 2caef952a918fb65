import { argument, defineCommand } from '../command/declaration.js';
import { reportOutput } from '../command/shared-flags.js';
import { archiveProofFlags } from './flags.js';
import path from 'node:path';
import { formatDiagnostic } from '../../core/diagnostic.js';
import { diagnosticsFrom } from '../../core/diagnostics-error.js';
import { OpmateError, redact } from '../../core/errors.js';
import type { JsonObject } from '../../document/json.js';
import { type ArchiveDiagnostic, verifyArchiveSet } from '../../oci/archive-set/archive-verify.js';
import {
  type ArchiveIndex,
  archiveIndexName,
  readArchiveIndex,
} from '../../oci/archive-set/archive-index.js';
import { getArchiveDirectory, readProof } from './options.js';
import { exitCodes } from '../exit-codes.js';
import { createLogger } from '../logger.js';
import { writeAll } from '../output.js';
import { amountOfBytes, count, printable } from '../printable.js';
import { writeReport } from '../reports/report.js';

/**
 * `opmate archive verify DIR`: reads all of an archive. Prints on stdout that it is sound, or each fault, as text or in
 * the format of `-o`. Exit code 3 when it is damaged, 1 when it is not the one that `--id` or
 * `--verify-key` wants.
 */
export const command = defineCommand({
  summary: 'read a whole archive and report damaged or missing content',
  arguments: [argument('<archive>', 'directory of the archive')],
  flags: { output: reportOutput, ...archiveProofFlags },
  examples: [
    ['Check an archive after it was carried', 'opmate archive verify ./archive'],
    ['Write the findings as JSON', 'opmate archive verify ./archive -o json'],
  ],
  async run({ context, args: [directory], options }) {
    const { output: format = 'text' } = options;
    const place = getArchiveDirectory(directory, context);
    const proof = await readProof(options, context);
    const logger = createLogger(context, options);
    let index: ArchiveIndex | undefined;
    let faults: ArchiveDiagnostic[];
    try {
      index = await readArchiveIndex(place, proof);
      faults = await verifyArchiveSet(place, { logger, proof, signal: context.signal });
    } catch (error) {
      const isDamaged = error instanceof OpmateError && damages.has(error.code);
      if (!isDamaged || index !== undefined) throw error;
      faults = diagnosticsFrom(error).map((diagnostic) => ({
        ...diagnostic,
        code: 'invalid-index',
        file: archiveIndexName,
      }));
    } finally {
      logger.close();
    }
    const named = faults.map((fault) => ({ ...fault, file: path.join(directory, fault.file) }));
    if (format !== 'text') {
      const value = (): JsonObject => toValue(index, faults);
      await writeReport(context, { command: 'opmate archive verify', diagnostics: named, value }, format);
    } else if (faults.length > 0) {
      const lines = [...named.map(formatDiagnostic), `${directory}: ${count(named.length, 'problem')} found`];
      const text = lines.map((line) => `${printable(redact(line))}\n`).join('');
      await writeAll(context.stdout, text, context.signal);
    } else if (index !== undefined) {
      const { parts, blobs, images, bytes } = getAmounts(index);
      const amounts = `${count(parts, 'part')}, ${count(images, 'image')}, ${count(blobs, 'blob')}, ${amountOfBytes(bytes)}`;
      await writeAll(context.stdout, `${index.id}: ${amounts}: no problems found\n`);
      if (index.base !== undefined) {
        const what = index.holders === undefined ? 'archive' : 'registry with the content of inventory';
        logger.log('info', `it needs ${what} ${index.base}`);
      }
    }
    return faults.length === 0 ? exitCodes.done : exitCodes.findings;
  },
});

/** An index that can be read and is wrong is damage; one that cannot be read says nothing about the archive. */
const damages: ReadonlySet<string> = new Set(['SYNTAX', 'INVALID', 'LIMIT']);

function getAmounts(index: ArchiveIndex | undefined) {
  return {
    parts: index?.parts.length ?? 0,
    blobs: index?.blobs.size ?? 0,
    bytes: (index?.parts ?? []).reduce((sum, { size }) => sum + size, 0),
    images: index?.images.length ?? 0,
  };
}

function toValue(index: ArchiveIndex | undefined, faults: readonly ArchiveDiagnostic[]): JsonObject {
  return {
    ...(index !== undefined && { id: index.id }),
    ...(index?.base !== undefined && { base: index.base }),
    ...getAmounts(index),
    faults: faults.map(({ file, subject, problem }) => ({
      file,
      ...(subject !== undefined && { digest: subject }),
      message: redact(problem),
    })),
  };
}
