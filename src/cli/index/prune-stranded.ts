import { defineCommand } from '../command/declaration.js';
import { containerToolFlag, fromIndex, indexImageFlags } from './index-image-flags.js';
import { planPruneStranded } from '../registry/removals.js';
import { changeIndex } from './edit.js';

/** `opmate index prune-stranded`: removes the bundles of an index image that are in no channel. */
export const command = defineCommand({
  summary: 'remove bundles that are in no channel from an index image',
  tool: 'opm',
  flags: {
    fromIndex: fromIndex('index image to prune'),
    ...indexImageFlags,
    containerTool: containerToolFlag,
  },
  examples: [
    [
      'Prune an index image',
      'opmate index prune-stranded -f registry.example.com/demo/index:v1 -t registry.example.com/demo/index:v2 -i scratch',
    ],
    [
      'Save the image to a file',
      'opmate index prune-stranded -f registry.example.com/demo/index:v1 --save index.tar -i scratch',
    ],
  ],
  run: ({ context, options }) => changeIndex(context, options, planPruneStranded),
});
