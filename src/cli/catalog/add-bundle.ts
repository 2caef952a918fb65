import { addBundlesToImage } from '../../api/images/add-bundles-to-image.js';
import { argument, defineCommand } from '../command/declaration.js';
import { choice, flag, list } from '../command/flags.js';
import { UsageError } from '../../core/errors.js';
import { imageOutputFlags, planSignedOutputs } from '../index/image-output.js';
import { reportEditedImage } from './edited-image.js';

/** `opmate catalog add-bundle`; prints the image by digest. */
export const command = defineCommand({
  summary: 'add bundles to an index image',
  description:
    'Packages of the database that index builds keep in the image are added there and rendered again; others are edited in the catalog. A bundle that the index has is left out.',
  arguments: [argument('<index>', 'index image'), argument('[bundle...]', 'bundle images')],
  flags: {
    ...imageOutputFlags,
    mode: choice(
      'mode',
      ['replaces', 'semver', 'semver-skippatch'] as const,
      'source of upgrade edges: bundles, or their versions',
      { default: 'replaces' },
    ),
    overwriteLatest: flag('replace the head of a channel by a bundle of the same name'),
    deprecate: list('image', 'deprecate these bundles and remove what they replace'),
  },
  examples: {
    'Add a release to an index':
      'opmate catalog add-bundle registry.example.com/demo/catalog:v1 registry.example.com/demo/bundle:v1.3.0 -t registry.example.com/demo/index-of-bundles:v2',
    'Save the new index to a file':
      'opmate catalog add-bundle registry.example.com/demo/catalog:v1 registry.example.com/demo/bundle:v1.3.0 --save oci-archive:index.tar',
  },
  async runInSession({ context, args: [index, bundles = []], options, session }) {
    const { mode, overwriteLatest, deprecate: deprecated } = options;
    if (bundles.length === 0 && deprecated === undefined) {
      throw new UsageError('missing bundles', { hint: 'specify bundle images, or --deprecate' });
    }
    const outputs = await planSignedOutputs(options, context);
    const edit = { outputs, mode, overwriteLatest, deprecated };
    await reportEditedImage(context, session, await addBundlesToImage(index, bundles, session, edit));
  },
});
