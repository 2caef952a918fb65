import { defineCommand } from '../command/declaration.js';
import { planRemove } from '../registry/removals.js';
import { changeIndex } from './edit.js';
import { removeFlags } from './index-image-flags.js';

/** `opmate index rm`: removes packages from an index image. */
export const command = defineCommand({
  summary: 'remove packages from an index image',
  tool: 'opm',
  flags: removeFlags,
  examples: [
    [
      'Remove a package',
      'opmate index rm --package demo -f registry.example.com/demo/index:v1 -t registry.example.com/demo/index:v2 -i scratch',
    ],
    [
      'Save the image to a file',
      'opmate index rm --package demo -f registry.example.com/demo/index:v1 --save index.tar -i scratch',
    ],
  ],
  run: ({ context, options }) => changeIndex(context, options, () => planRemove(options)),
});
