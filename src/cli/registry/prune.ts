import { prunePackages } from '../../sqlite/remove/prune.js';
import { editDatabase } from '../../sqlite/schema/edit.js';
import { argument, defineCommand } from '../command/declaration.js';
import { list } from '../command/flags.js';
import { createLogger } from '../logger.js';
import { requireFlag } from '../command/require-flag.js';
import { databaseOf, databaseSummary, editFlags, permissiveFlag } from './database.js';
import { reportPruned } from './removals.js';

/** `opmate registry prune`: removes all packages but those that are named from a database file. */
export const command = defineCommand({
  summary: 'remove all other packages',
  tool: 'opm',
  arguments: [argument('[database]', databaseSummary)],
  flags: {
    packages: list('package', 'packages to keep', { short: 'p', aliases: ['package'], group: 'Selection' }),
    ...editFlags,
    permissive: permissiveFlag,
  },
  examples: [
    ['Keep one package', 'opmate registry prune index.db -p demo'],
    ['Keep the index, and write a new one', 'opmate registry prune index.db -p demo --output-db new.db'],
  ],
  async run({ context, args: [file], options }) {
    const names = requireFlag(options.packages, 'packages');
    const { outputDb } = options;
    const { signal } = context;
    const logger = createLogger(context, options);
    const database = databaseOf(file, options.database);
    const report = await editDatabase(
      database,
      { outputFile: outputDb, vacuum: true, signal, logger },
      (opened) => prunePackages(opened, names, { signal }),
    );
    reportPruned(logger, outputDb ?? database, report);
  },
});
