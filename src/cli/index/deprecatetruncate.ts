import { defineCommand } from '../command/declaration.js';
import { allowPackageRemovalFlag, deprecatedImagesFlag, permissiveFlag } from '../registry/database.js';
import { fromIndex, indexImageFlags, toolFlags } from './index-image-flags.js';
import { requireFlag } from '../command/require-flag.js';
import { planDeprecate } from '../registry/removals.js';
import { changeIndex } from './edit.js';

/** `opmate index deprecatetruncate`: deprecates bundles of an index image, and removes what is older. */
export const command = defineCommand({
  summary: 'deprecate bundles of an index image and remove older ones',
  tool: 'opm',
  flags: {
    bundles: deprecatedImagesFlag,
    fromIndex: fromIndex('index image to edit'),
    allowPackageRemoval: allowPackageRemovalFlag,
    permissive: permissiveFlag,
    ...indexImageFlags,
    ...toolFlags,
  },
  examples: [
    [
      'Deprecate a bundle',
      'opmate index deprecatetruncate -b registry.example.com/demo/bundle:v1.1.0 -f registry.example.com/demo/index:v1 -t registry.example.com/demo/index:v2 -i scratch',
    ],
    [
      'Save the image to a file',
      'opmate index deprecatetruncate -b registry.example.com/demo/bundle:v1.1.0 -f registry.example.com/demo/index:v1 --save index.tar -i scratch',
    ],
  ],
  run: ({ context, options }) =>
    changeIndex(context, options, () => planDeprecate(requireFlag(options.bundles, 'bundles'), options)),
});
