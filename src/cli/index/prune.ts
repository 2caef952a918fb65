import { defineCommand } from '../command/declaration.js';
import { keptPackagesFlag, permissiveFlag } from '../registry/database.js';
import { containerToolFlag, fromIndex, indexImageFlags } from './index-image-flags.js';
import { planPrune } from '../registry/removals.js';
import { changeIndex } from './edit.js';

/** `opmate index prune`: removes all packages but those that are named from an index image. */
export const command = defineCommand({
  summary: 'remove all other packages from an index image',
  tool: 'opm',
  flags: {
    package: keptPackagesFlag,
    fromIndex: fromIndex('index image to prune'),
    permissive: permissiveFlag,
    ...indexImageFlags,
    containerTool: containerToolFlag,
  },
  examples: [
    [
      'Keep one package',
      'opmate index prune -p demo -f registry.example.com/demo/index:v1 -t registry.example.com/demo/index:v2 -i scratch',
    ],
    [
      'Save the image to a file',
      'opmate index prune -p demo -f registry.example.com/demo/index:v1 --save index.tar -i scratch',
    ],
  ],
  run: ({ context, options }) => changeIndex(context, options, () => planPrune(options)),
});
