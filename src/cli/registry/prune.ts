import { prunePackages } from '../../sqlite/remove/prune.js';
import { argument, defineCommand } from '../command/declaration.js';
import { createLogger } from '../logger.js';
import { requireFlag } from '../command/require-flag.js';
import {
  changeDatabase,
  getDatabase,
  databaseSummary,
  editFlags,
  keptPackagesFlag,
  permissiveFlag,
} from './database.js';
import { reportPruned } from './removals.js';

/** `opmate registry prune`: removes all packages but those that are named from a database file. */
export const command = defineCommand({
  summary: 'remove all other packages',
  tool: 'opm',
  arguments: [argument('[database]', databaseSummary)],
  flags: {
    package: keptPackagesFlag,
    ...editFlags,
    permissive: permissiveFlag,
  },
  examples: [
    ['Keep one package', 'opmate registry prune index.db -p demo'],
    ['Keep the index, and write a new one', 'opmate registry prune index.db -p demo --output-db new.db'],
  ],
  async run({ context, args: [file], options }) {
    const names = requireFlag(options.package, 'package');
    const { signal } = context;
    const place = { file: getDatabase(file, options.database), outputDb: options.outputDb };
    await changeDatabase(
      { signal, logger: createLogger(context, options) },
      place,
      (opened) => prunePackages(opened, names, { signal }),
      reportPruned,
    );
  },
});
