import { argument, defineCommand } from '../command/declaration.js';
import { eachChannelFlag, pullFromFlag } from '../registry/database.js';
import { fromIndex, indexImageFlags, toolFlags } from './index-image-flags.js';
import { planDeleteLatest } from '../registry/removals.js';
import { changeIndex } from './edit.js';

/** `opmate index delete-latest`: removes the newest version of a package from an index image. */
export const command = defineCommand({
  summary: 'remove the newest version of a package from an index image',
  arguments: [argument('<package>', 'package')],
  flags: {
    fromIndex: fromIndex('index image to edit'),
    eachChannel: eachChannelFlag,
    pullFrom: pullFromFlag,
    ...indexImageFlags,
    ...toolFlags,
  },
  examples: [
    [
      'Remove the newest version',
      'opmate index delete-latest demo -f registry.example.com/demo/index:v1 -t registry.example.com/demo/index:v2 -i scratch',
    ],
    [
      'Save the image to a file',
      'opmate index delete-latest demo -f registry.example.com/demo/index:v1 --save index.tar -i scratch',
    ],
  ],
  run: ({ context, args: [packageName], options }) =>
    changeIndex(context, options, () => planDeleteLatest(packageName, options)),
});
