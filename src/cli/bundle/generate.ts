import { defineCommand } from '../command/declaration.js';
import { generateBundle } from '../../api/bundle/generate-bundle.js';
import { shownPath } from '../../core/text/paths.js';
import { authorFlags, parseRequest } from './author-flags.js';
import { logPrepared } from './bundle-ending.js';

/** `opmate bundle generate`; writes both files or neither. */
export const command = defineCommand({
  summary: 'write annotations and a Dockerfile for a directory of manifests',
  description:
    'Writes metadata/annotations.yaml beside the directory, and bundle.Dockerfile into the working directory; both ' +
    'replace existing ones. Package and channels are optional if the directory is next to those of ' +
    'other versions and a package manifest.',
  flags: authorFlags,
  examples: {
    'Write the metadata of a bundle':
      'opmate bundle generate -d ./bundle/manifests -p demo -c stable -e stable',
    'Write a copy of the bundle':
      'opmate bundle generate -d ./bundle/manifests -p demo -c stable --to ./demo',
  },
  async runInSession({ context, options, session }) {
    const request = parseRequest(options);
    const { files, ...prepared } = await generateBundle(request, session);
    logPrepared(session, prepared);
    for (const file of files)
      session.logger.log('info', `wrote ${shownPath(context.workingDirectory, file)}`);
  },
});
