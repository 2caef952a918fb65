import { argument, defineCommand } from '../command/declaration.js';
import { flag, grouped } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { inspectImage, listTags, readManifest } from '../../api/images/inspect-image.js';
import type { Session } from '../../source/session.js';
import { encodeData } from '../reports/encode-data.js';
import { writePieces } from '../session.js';

/** `opmate oci inspect`; reads no layers. */
export const command = defineCommand({
  summary: 'show digest, platform, labels and layers of an image',
  arguments: [argument('<reference>', 'image in a registry, layout or archive')],
  flags: {
    output: outputFormat(['json', 'yaml'], { default: 'json' }),
    ...grouped('Output', {
      raw: flag('print the raw manifest', { excludes: ['tags'] }),
      tags: flag('list the tags of the repository'),
    }),
  },
  examples: {
    'Show an image': 'opmate oci inspect registry.example.com/demo/bundle:v1.0.0',
    'List the tags of a repository': 'opmate oci inspect registry.example.com/demo/bundle --tags',
  },
  async runInSession({ context, args: [reference], options, session }) {
    const { output: format } = options;
    const describe = async (session: Session): Promise<string | Buffer> => {
      if (options.tags) return encodeData(await listTags(reference, session), format);
      if (options.raw) return readManifest(reference, session);
      return encodeData(await inspectImage(reference, session), format);
    };
    await writePieces(context, session, [await describe(session)]);
  },
});
