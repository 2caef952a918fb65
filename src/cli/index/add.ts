import { addToIndexImage } from '../../api/indexes/index-image.js';
import { defineCommand } from '../command/declaration.js';
import { list } from '../command/flags.js';
import { requireFlag } from '../command/require-flag.js';
import { planAdd, reportAdded, warnOfFlags } from '../registry/add-bundles.js';
import { addFlags } from '../registry/add-flags.js';
import { exitCodes } from '../exit-codes.js';
import { printIndexImage } from './edit.js';
import { baseImageNote, fromIndex, indexImageFlags, toolFlags } from './index-image-flags.js';

/** `opmate index add`; without bundles, it only migrates the database. */
export const command = defineCommand({
  summary: 'add bundles to an index image, or create one',
  description: baseImageNote,
  tool: 'opm',
  flags: {
    bundles: list('bundle', "bundle images, directories or layouts; '' for none", {
      short: 'b',
      mayBeNone: true,
      group: 'Input',
    }),
    fromIndex: fromIndex('index image to add to (default: an empty index)'),
    ...addFlags,
    ...indexImageFlags,
    ...toolFlags,
  },
  examples: [
    [
      'Create an index image',
      'opmate index add -b registry.example.com/demo/bundle:v1.0.0 -t registry.example.com/demo/new-index:v1 -i scratch',
    ],
    [
      'Add a release to an index image',
      'opmate index add -b registry.example.com/demo/bundle:v1.3.0 -f registry.example.com/demo/index:v1 -t registry.example.com/demo/index:v2 -i scratch',
    ],
  ],
  async run({ context, options }) {
    const bundles =
      options.fromFile === undefined ? requireFlag(options.bundles, 'bundles') : options.bundles;
    const flags = { ...options, containerTool: 'none' };
    const plan = await planAdd(context, flags, bundles ?? []);
    let name = '';
    let code: number = exitCodes.done;
    await printIndexImage(
      context,
      options,
      (session, image) => {
        warnOfFlags(flags, plan.options, session.logger);
        const onEdited = (_added: unknown, indexName: string): void => void (name = indexName);
        return addToIndexImage(plan.references, session, { ...plan.options, ...image, onEdited });
      },
      ({ result }, logger) => (code = reportAdded(logger, result, name)),
    );
    return code;
  },
});
