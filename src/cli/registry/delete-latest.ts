import { parsePullFrom } from '../../source/bundles.js';
import { deleteLatest } from '../../sqlite/remove/delete-latest.js';
import { editDatabase } from '../../sqlite/schema/edit.js';
import { argument, defineCommand } from '../command/declaration.js';
import { useSession } from '../session.js';
import { databaseOf, databaseSummary, eachChannelFlag, editFlags, pullFromFlag } from './database.js';
import { manifestFetcher, reportDeleted } from './removals.js';

/** `opmate registry delete-latest`: removes the newest version of a package. */
export const command = defineCommand({
  summary: 'remove the newest version of a package',
  arguments: [argument('<package>', 'package'), argument('[database]', databaseSummary)],
  flags: { ...editFlags, eachChannel: eachChannelFlag, pullFrom: pullFromFlag },
  examples: [
    ['Remove the newest version', 'opmate registry delete-latest demo index.db'],
    ['Keep the index, and write a new one', 'opmate registry delete-latest demo index.db --output-db new.db'],
  ],
  async run({ context, args: [packageName, file], options }) {
    const { outputDb, eachChannel } = options;
    const database = databaseOf(file, options.database);
    const pullFrom = parsePullFrom(options.pullFrom ?? []);
    await useSession(context, options, async (session) => {
      const { signal, logger } = session;
      const report = await editDatabase(
        database,
        { outputFile: outputDb, vacuum: true, signal, logger },
        (opened) => deleteLatest(opened, packageName, manifestFetcher(session, pullFrom), { eachChannel }),
      );
      reportDeleted(logger, outputDb ?? database, report);
    });
  },
});
