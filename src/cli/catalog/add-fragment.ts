import { addFragmentsToImage } from '../../api/images/edit-catalog-image.js';
import { argument, defineCommand } from '../command/declaration.js';
import { list } from '../command/flags.js';
import { imageOutputFlags, planSignedOutputs } from '../index/image-output.js';
import { reportEditedImage } from './edited-image.js';

/** `opmate catalog add-fragment`; prints the image by digest. */
export const command = defineCommand({
  summary: 'add or replace packages of an index image by those of catalog fragments',
  description: 'Each directory of a fragment replaces that of the index in one new layer, on all platforms.',
  arguments: [
    argument('<index>', 'index image'),
    argument('<fragment...>', 'catalog fragments: directories or images'),
  ],
  flags: {
    ...imageOutputFlags,
    allowPruning: list('package', 'remove these packages, or bundles of theirs without an upgrade'),
  },
  examples: {
    'Add a package to an index':
      'opmate catalog add-fragment registry.example.com/demo/catalog:v1 ./catalog -t registry.example.com/demo/index-of-fragments:v2',
    'Save the new index to a file':
      'opmate catalog add-fragment registry.example.com/demo/catalog:v1 ./catalog --save oci-archive:index.tar',
  },
  async runInSession({ context, args: [index, fragments], options, session }) {
    const outputs = await planSignedOutputs(options, context);
    const { allowPruning } = options;
    const edited = await addFragmentsToImage(index, fragments, session, { outputs, allowPruning });
    await reportEditedImage(context, session, edited);
  },
});
