import { type PruneReport, prunePackages } from '../../sqlite/remove/prune.js';
import type { FlagValues } from '../command/flags.js';
import { requireFlag } from '../command/require-flag.js';
import { keptPackagesFlag, permissiveFlag } from '../registry/database.js';
import { databaseEdit, imageEdit, logRemoved } from './edit-commands.js';
import type { IndexEdit } from './index-edit.js';
import { containerToolFlag } from './index-image-flags.js';

const flags = { package: keptPackagesFlag, permissive: permissiveFlag };

const prune = {
  name: 'prune',
  tool: 'opm',
  flags,
  examples: [['Keep one package', '-p demo']],
  plan: planPrune,
} as const;

/** `opmate registry prune`. */
export const registryCommand = databaseEdit({ ...prune, summary: 'remove all other packages' });

/** `opmate index prune`. */
export const command = imageEdit(
  { ...prune, summary: 'remove all other packages from an index image' },
  { containerTool: containerToolFlag },
);

function planPrune(options: FlagValues<typeof flags>): IndexEdit<PruneReport> {
  const names = requireFlag(options.package, 'package');
  return {
    change: (database, { signal }) => prunePackages(database, names, { signal }),
    report(logger, name, report) {
      for (const text of report.unknown)
        logger.log('warn', `${name}: no package found for packagename ${text}, which was to be kept`);
      logRemoved(logger, name, report);
    },
  };
}
