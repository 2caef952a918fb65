import { removePackagesFromImage } from '../../api/images/edit-catalog-image.js';
import { argument, defineCommand } from '../command/declaration.js';
import { imageOutputFlags, planSignedOutputs } from '../index/image-output.js';
import { reportEditedImage } from './edited-image.js';

/** `opmate catalog rm-package`; prints the image by digest. */
export const command = defineCommand({
  summary: 'remove packages from an index image',
  arguments: [argument('<index>', 'index image'), argument('<package...>', 'packages to remove')],
  flags: imageOutputFlags,
  examples: {
    'Remove a package from an index':
      'opmate catalog rm-package registry.example.com/demo/catalog:v1 demo -t registry.example.com/demo/index-without-demo:v1',
    'Save the new index to a file':
      'opmate catalog rm-package registry.example.com/demo/catalog:v1 demo --save oci-archive:index.tar',
  },
  async runInSession({ context, args: [index, packages], options, session }) {
    const outputs = await planSignedOutputs(options, context);
    await reportEditedImage(
      context,
      session,
      await removePackagesFromImage(index, packages, session, { outputs }),
    );
  },
});
