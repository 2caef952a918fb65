import { withOpen } from '../../core/concurrency.js';
import { writePieces } from '../session.js';
import { argument, defineCommand } from '../command/declaration.js';
import { databaseSummary } from './database.js';
import { sortedByBytes } from '../../core/order.js';
import { openIndex } from '../../api/indexes/open-index.js';
import { exitCodes } from '../exit-codes.js';
import { printableLine } from '../printable.js';

/** `opmate registry bundles`; exit code 4 if a bundle has no reference. */
export const command = defineCommand({
  summary: 'list all bundle references, one per line for registry add --from-file',
  arguments: [argument('<database>', databaseSummary)],
  examples: {
    'List the bundle images of an index': 'opmate registry bundles index.db',
    'Create an index with the same bundles':
      'opmate registry bundles index.db | opmate registry add --from-file - -d new.db',
  },
  async runInSession({ context, args: [file], session }) {
    return withOpen(openIndex(file, session), async (index) => {
      const bundles = index.listBundleReferences();
      const references = new Set(bundles.map(({ image }) => image));
      const missing = bundles.filter(({ image }) => image === '');
      references.delete('');
      for (const { name } of missing) {
        session.logger.log('warn', `${printableLine(name)}: skipped: no image in the index`);
      }
      const lines = sortedByBytes(references).map((reference) => `${printableLine(reference)}\n`);
      await writePieces(context, session, lines.join(''));
      return missing.length > 0 ? exitCodes.partly : exitCodes.done;
    });
  },
});
