import { defineCommand } from '../command/declaration.js';
import { generateBundle } from '../../api/bundle/generate-bundle.js';
import { shownPath } from '../../bundle/author/generate.js';
import { requireFlag } from '../command/require-flag.js';
import { authorFlags } from './author-flags.js';
import { useSession } from '../session.js';
import { tellWarnings } from './findings.js';

/** `opmate bundle generate`: annotations and Dockerfile of a directory of manifests, both or neither. */
export const command = defineCommand({
  summary: 'write annotations and a Dockerfile for a directory of manifests',
  description:
    'Writes metadata/annotations.yaml beside the directory, and bundle.Dockerfile into the working directory; both ' +
    'replace existing ones. Package and channels are optional if the directory is next to those of ' +
    'other versions and a package manifest.',
  flags: authorFlags,
  examples: [
    [
      'Write the metadata of a bundle',
      'opmate bundle generate -d ./bundle/manifests -p demo -c stable -e stable',
    ],
    [
      'Write a copy of the bundle',
      'opmate bundle generate -d ./bundle/manifests -p demo -c stable --to ./demo',
    ],
  ],
  async run({ context, options }) {
    const { channel, default: defaultChannel, baseImage, package: packageName } = options;
    const directory = requireFlag(options.directory, 'directory');
    const { workingDirectory } = context;
    await useSession(context, options, async (session) => {
      const { logger } = session;
      const { files, inferred, warnings } = await generateBundle(
        {
          ...{ directory, packageName, defaultChannel, baseImage, workingDirectory },
          channels: channel,
          outputDirectory: options.to || undefined,
        },
        session,
      );
      for (const sentence of inferred) logger.log('info', sentence);
      tellWarnings(session, warnings);
      for (const file of files) logger.log('info', `wrote ${shownPath(workingDirectory, file)}`);
    });
  },
});
