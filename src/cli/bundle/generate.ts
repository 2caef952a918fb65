import { defineCommand } from '../command/declaration.js';
import { authorFlags, requestOf } from './author-flags.js';
import { generateBundle, shownPath } from '../../bundle/author/generate.js';
import { replaceFiles } from '../../files/replace-file.js';
import { useSession } from '../session.js';
import { tellWarnings } from './findings.js';

/** `opmate bundle generate`: annotations and Dockerfile of a directory of manifests, both or neither. */
export const command = defineCommand({
  summary: 'write annotations and a Dockerfile for a directory of manifests',
  description:
    'Writes metadata/annotations.yaml beside the directory, and bundle.Dockerfile into the working directory; both ' +
    'replace existing ones. Package and channels may be left away where the directory stands beside those of the ' +
    'other versions and a package manifest.',
  flags: authorFlags,
  examples: [
    [
      'Write the metadata of a bundle',
      'opmate bundle generate -d ./bundle/manifests -p demo -c stable -e stable',
    ],
    [
      'Write a copy of the bundle',
      'opmate bundle generate -d ./bundle/manifests -p demo -c stable -u ./demo',
    ],
  ],
  async run({ context, options }) {
    const request = requestOf(context, options);
    await useSession(context, options, async (session) => {
      const { logger } = session;
      const { files, inferred, warnings } = await generateBundle(request, session);
      for (const sentence of inferred) logger.log('info', sentence);
      tellWarnings(session, warnings);
      await replaceFiles(files, session);
      for (const { target } of files)
        logger.log('info', `wrote ${shownPath(request.workingDirectory, target)}`);
    });
  },
});
