import { copyReference } from '../../api/images/copy-reference.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag } from '../command/flags.js';
import { writeAll } from '../output.js';
import { amountOfBytes, count } from '../printable.js';

/** `opmate oci copy`; prints the digest at the target. */
export const command = defineCommand({
  summary: 'copy an image between registries, layouts and archives',
  arguments: [
    argument('<source>', 'image in a registry, layout or archive'),
    argument('<destination>', 'registry reference or oci:DIR[:TAG]'),
  ],
  flags: { referrers: flag('also copy referrers such as signatures') },
  examples: {
    'Save an image to a layout directory':
      'opmate oci copy registry.example.com/demo/bundle:v1.0.0 oci:layout:v1',
    'Push an image from a layout directory':
      'opmate oci copy oci:layout:v1 registry.example.com/demo/copy:v1',
  },
  async runInSession({ context, args: [source, target], options, session }) {
    const { logger } = session;
    const { referrers } = options;
    const result = await copyReference(source, target, session, { referrers });
    const amount = `${count(result.manifests, 'manifest')}, ${count(result.blobs.copied, 'blob')}`;
    logger.log('info', `copied ${source} to ${target}: ${amount}, ${amountOfBytes(result.bytes)}`);
    logger.close();
    await writeAll(context.stdout, `${result.descriptor.digest}\n`);
  },
});
