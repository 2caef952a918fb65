import { type StrandedReport, pruneStranded } from '../../sqlite/remove/stranded.js';
import { databaseEdit, imageEdit, logRemoved } from './edit-commands.js';
import type { IndexEdit } from './index-edit.js';
import { containerToolFlag } from './index-image-flags.js';

const edit: IndexEdit<StrandedReport> = {
  change: pruneStranded,
  report(logger, name, { bundles, nameless }) {
    if (bundles.length > 0 || nameless === 0) logRemoved(logger, name, { bundles });
    if (nameless === 0) return;
    const rows = nameless === 1 ? '1 row of a bundle' : `${nameless} rows of bundles`;
    logger.log('info', `${name}: removed ${rows} without a name`);
  },
};

const pruning = {
  name: 'prune-stranded',
  tool: 'opm',
  flags: {},
  examples: [['Prune an index', '']],
  plan: () => edit,
} as const;

/** `opmate registry prune-stranded`. */
export const registryCommand = databaseEdit({ ...pruning, summary: 'remove bundles that are in no channel' });

/** `opmate index prune-stranded`. */
export const command = imageEdit(
  { ...pruning, summary: 'remove bundles that are in no channel from an index image' },
  { containerTool: containerToolFlag },
);
