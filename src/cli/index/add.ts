import { type AddedBundles, addToIndex } from '../../api/indexes/add-to-index.js';
import { addToIndexImage } from '../../api/indexes/index-image.js';
import { argument, defineCommand } from '../command/declaration.js';
import { grouped, list, requiredUnless, text } from '../command/flags.js';
import { exitCodes } from '../exit-codes.js';
import { databaseSummary, editFlags, getDatabase, listAndDatabase } from '../registry/database.js';
import { addBundleFlags, readAddPlan, reportAdded, warnOfFlags } from './add-bundles.js';
import { baseImageNote, indexImageFlags, printIndexImage, toolFlags } from './edit.js';

/** `opmate registry add`; without bundles, it only migrates the database. */
export const registryCommand = defineCommand({
  summary: 'add bundles to an index',
  tool: 'opm',
  arguments: [argument('[images]', 'bundles, separated by commas'), argument('[database]', databaseSummary)],
  flags: {
    ...grouped('Input', {
      bundleImages: list('bundle', 'bundle images, directories or layouts', { short: 'b', mayBeNone: true }),
      batch: list('bundle', 'the same as --bundle-images', { mayBeNone: true }),
    }),
    ...editFlags,
    ...addBundleFlags,
    containerTool: text('tool', 'ignored; accepted for compatibility', { short: 'c', default: 'none' }),
  },
  commonFlags: ['bundleImages', 'database', 'outputDb', 'mode', 'overwriteLatest', 'permissive'],
  examples: {
    'Add a release to an index': 'opmate registry add -b registry.example.com/demo/bundle:v1.3.0 -d index.db',
    'Create an index from a bundle directory': 'opmate registry add ./bundle new.db',
  },
  async runInSession({ context, args: [images, second], options, session }) {
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
    const plan = await readAddPlan(context, options, references);
    warnOfFlags(options, plan.options, session.logger);
    const added = await addToIndex(database, plan.references, session, {
      ...plan.options,
      outputFile: outputDb,
    });
    return reportAdded(session.logger, added, outputDb ?? database);
  },
});

/** `opmate index add`; without bundles, it only migrates the database. */
export const command = defineCommand({
  summary: 'add bundles to an index image, or create one',
  description: baseImageNote,
  tool: 'opm',
  flags: {
    bundles: requiredUnless(
      ['fromFile'],
      list('bundle', "bundle images, directories or layouts; '' for none", {
        short: 'b',
        mayBeNone: true,
        group: 'Input',
      }),
    ),
    fromIndex: text('image', 'index image to add to (default: an empty index)', {
      short: 'f',
      group: 'Input',
    }),
    ...addBundleFlags,
    ...indexImageFlags,
    ...toolFlags,
  },
  commonFlags: [
    'bundles',
    'fromIndex',
    'tag',
    'save',
    'mode',
    'overwriteLatest',
    'binaryImage',
    'permissive',
  ],
  examples: {
    'Create an index image':
      'opmate index add -b registry.example.com/demo/bundle:v1.0.0 -t registry.example.com/demo/new-index:v1 -i scratch',
    'Add a release to an index image':
      'opmate index add -b registry.example.com/demo/bundle:v1.3.0 -f registry.example.com/demo/index:v1 -t registry.example.com/demo/index:v2 -i scratch',
  },
  async runInSession({ context, options, session }) {
    const flags = { ...options, containerTool: 'none' };
    const plan = await readAddPlan(context, flags, options.bundles ?? []);
    let code: number = exitCodes.done;
    await printIndexImage<AddedBundles>(
      context,
      options,
      session,
      (image, onEdited) => {
        warnOfFlags(flags, plan.options, session.logger);
        return addToIndexImage(plan.references, session, { ...plan.options, ...image, onEdited });
      },
      (logger, name, added) => void (code = reportAdded(logger, added, name)),
    );
    return code;
  },
});
