import { addToIndex } from '../../api/indexes/add-to-index.js';
import { argument, defineCommand } from '../command/declaration.js';
import { grouped, list, text } from '../command/flags.js';
import { useSession } from '../session.js';
import { planAdd, reportAdded, warnOfFlags } from './add-bundles.js';
import { addFlags } from './add-flags.js';
import { getDatabase, databaseSummary, editFlags, listAndDatabase } from './database.js';

/** `opmate registry add`; without bundles, it only migrates the database. */
export const command = defineCommand({
  summary: 'add bundles to an index',
  tool: 'opm',
  arguments: [argument('[images]', 'bundles, separated by commas'), argument('[database]', databaseSummary)],
  flags: {
    ...grouped('Input', {
      bundleImages: list('bundle', 'bundle images, directories or layouts', { short: 'b', mayBeNone: true }),
      batch: list('bundle', 'the same as --bundle-images', { mayBeNone: true }),
    }),
    ...editFlags,
    ...addFlags,
    containerTool: text('tool', 'ignored; accepted for compatibility', { short: 'c', default: 'none' }),
  },
  examples: [
    [
      'Add a release to an index',
      'opmate registry add -b registry.example.com/demo/bundle:v1.3.0 -d index.db',
    ],
    ['Create an index from a bundle directory', 'opmate registry add ./bundle new.db'],
  ],
  async run({ context, args: [images, second], options }) {
    const { bundleImages, batch, fromFile, outputDb } = options;
    const used = bundleImages
      ? '--bundle-images'
      : batch
        ? '--batch'
        : fromFile === undefined
          ? undefined
          : '--from-file';
    const { list: listed = [], file } = listAndDatabase([images, second], 'bundles', used);
    const database = getDatabase(file, options.database);
    const references = [...listed, ...(bundleImages ?? []), ...(batch ?? [])];
    const plan = await planAdd(context, options, references);
    return useSession(context, options, async (session) => {
      warnOfFlags(options, plan.options, session.logger);
      const added = await addToIndex(database, plan.references, session, {
        ...plan.options,
        outputFile: outputDb,
      });
      return reportAdded(session.logger, added, outputDb ?? database);
    });
  },
});
