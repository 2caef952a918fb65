import { UsageError } from '../../core/errors.js';
import { defineCommand } from '../command/declaration.js';
import { pullFromFlag, removedBundleFlag } from '../registry/database.js';
import { changeIndex } from './edit.js';
import { planDelete, planRemove } from '../registry/removals.js';
import { removeFlags } from './index-image-flags.js';

/** `opmate index delete`: removes packages from an index image, or with `--bundle` one bundle. */
export const command = defineCommand({
  summary: 'remove packages, or one bundle, from an index image',
  flags: {
    ...removeFlags,
    bundle: removedBundleFlag,
    pullFrom: pullFromFlag,
  },
  examples: [
    [
      'Remove one bundle',
      'opmate index delete --bundle demo.v1.1.0 -f registry.example.com/demo/index:v1 -t registry.example.com/demo/index:v2 -i scratch',
    ],
    [
      'Remove a package, and save the image to a file',
      'opmate index delete --package demo -f registry.example.com/demo/index:v1 --save index.tar -i scratch',
    ],
  ],
  async run({ context, options }) {
    const { bundle, package: packages } = options;
    if (bundle === undefined) return changeIndex(context, options, () => planRemove(options));
    await changeIndex(context, options, () => {
      if (packages === undefined) return planDelete(bundle, options);
      throw new UsageError('--bundle removes one bundle, and no package', {
        hint: 'use opmate index delete --bundle NAME --from-index IMAGE',
      });
    });
  },
});
