import { createManifestFetcher, parsePullFrom } from '../../source/bundles.js';
import { deleteLatest } from '../../sqlite/remove/delete-latest.js';
import { argument, defineCommand } from '../command/declaration.js';
import { useSession } from '../session.js';
import {
  changeDatabase,
  getDatabase,
  databaseSummary,
  eachChannelFlag,
  editFlags,
  pullFromFlag,
} from './database.js';
import { reportDeleted } from './removals.js';

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
    const { eachChannel } = options;
    const place = { file: getDatabase(file, options.database), outputDb: options.outputDb };
    const pullFrom = parsePullFrom(options.pullFrom ?? []);
    await useSession(context, options, async (session) => {
      const fetchManifests = createManifestFetcher(session, { pullFrom });
      await changeDatabase(
        session,
        place,
        (opened) => deleteLatest(opened, packageName, fetchManifests, { eachChannel }),
        reportDeleted,
      );
    });
  },
});
