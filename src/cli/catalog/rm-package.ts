import { removePackagesFromImage } from '../../api/images/edit-catalog-image.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag } from '../command/flags.js';
import { UsageError } from '../../core/errors.js';
import { imageOutputFlags, planSignedOutputs } from '../index/image-output.js';
import { reportEditedImage } from './edited-image.js';

/** `opmate catalog rm-package`; prints the image by digest. */
export const command = defineCommand({
  summary: 'remove packages from an index image',
  arguments: [argument('<index>', 'index image'), argument('[package...]', 'packages to remove')],
  flags: {
    ...imageOutputFlags,
    all: flag('remove all packages', { excludes: ['<package>'] }),
  },
  examples: {
    'Remove a package from an index':
      'opmate catalog rm-package registry.example.com/demo/catalog:v1 demo -t registry.example.com/demo/index-without-demo:v1',
    'Create an empty index from another':
      'opmate catalog rm-package registry.example.com/demo/catalog:v1 --all --save oci-archive:index.tar',
  },
  async runInSession({ context, args: [index, names = []], options, session }) {
    if (names.length === 0 && !options.all) {
      throw new UsageError('missing packages', { hint: 'specify packages, or --all' });
    }
    const outputs = await planSignedOutputs(options, context);
    const packages = options.all ? 'all' : names;
    const edited = await removePackagesFromImage(index, packages, session, { outputs });
    await reportEditedImage(context, session, edited);
  },
});
