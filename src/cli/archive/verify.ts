import { argument, defineCommand } from '../command/declaration.js';
import { reportOutput } from '../command/shared-flags.js';
import { archiveProofFlags } from './flags.js';
import { formatDiagnostic } from '../../core/diagnostic.js';
import { encodeFinding } from '../reports/option-words.js';
import { redactUrls } from '../../core/errors.js';
import type { JsonObject } from '../../document/json.js';
import { countArchiveImages } from '../../api/images/archive-proof.js';
import { verifyArchive } from '../../api/images/verify-archive.js';
import type { ArchiveIndex } from '../../oci/archive-set/archive-index.js';
import { formatArchiveAmounts, getArchiveBytes, getArchiveDirectory, readProof } from './options.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { count, printable } from '../printable.js';
import { writeReport } from '../reports/report.js';

/**
 * `opmate archive verify DIR`: reads a whole archive and prints its faults. Returns 3 for a damaged archive; fails for one
 * with another ID or signature than `--id` and `--verify-key` require.
 */
export const command = defineCommand({
  summary: 'read a whole archive and report damaged or missing content',
  arguments: [argument('<archive>', 'directory of the archive')],
  flags: { output: reportOutput, ...archiveProofFlags },
  examples: {
    'Check an archive after copying it': 'opmate archive verify ./archive',
    'Write the findings as JSON': 'opmate archive verify ./archive -o json',
  },
  async runInSession({ context, args: [archive], options, session }) {
    const { output: format = 'text' } = options;
    const directory = getArchiveDirectory(archive);
    const proof = await readProof(options, context);
    const { logger } = session;
    const { index, faults } = await verifyArchive(directory, session, { proof });
    logger.close();
    if (format !== 'text') {
      const value = (): JsonObject => ({
        ...(index !== undefined && { id: index.id }),
        ...(index?.base !== undefined && { base: index.base }),
        ...getAmounts(index),
        faults: faults.map(encodeFinding),
      });
      await writeReport(context, { command: 'opmate archive verify', diagnostics: faults, value }, format);
    } else if (faults.length > 0) {
      const lines = [
        ...faults.map(formatDiagnostic),
        `${directory}: ${count(faults.length, 'problem')} found`,
      ];
      const text = lines.map((line) => `${printable(redactUrls(line))}\n`).join('');
      await writeAll(context.stdout, text, context.signal);
    } else if (index !== undefined) {
      await writeAll(context.stdout, `${index.id}: ${formatArchiveAmounts(index)}: no problems found\n`);
      if (index.base !== undefined) {
        const what = index.holders === undefined ? 'archive' : 'registry with the content of inventory';
        logger.log('info', `it needs ${what} ${index.base}`);
      }
    }
    return faults.length === 0 ? exitCodes.done : exitCodes.findings;
  },
});

function getAmounts(index: ArchiveIndex | undefined) {
  const parts = index?.parts ?? [];
  return {
    parts: parts.length,
    files: index?.blobs.size ?? 0,
    bytes: getArchiveBytes({ parts }),
    images: index === undefined ? 0 : countArchiveImages(index),
  };
}
