import { argument, defineCommand } from '../command/declaration.js';
import { pushBundle } from '../../api/bundle/push-bundle.js';
import { parseReference } from '../../core/reference.js';
import { reportEnding } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { nextAfterImage, readSignBy, signByFlag } from '../index/image-output.js';
import { finishBundle, nextAfterBundle, logPrepared } from './bundle-ending.js';
import { endWithFindings } from './findings.js';

/** `opmate bundle push`; prints the image by digest. */
export const command = defineCommand({
  summary: 'push a saved bundle image, or build and push one from a directory',
  arguments: [
    argument(
      '<source>',
      'oci:DIR[:TAG], oci-archive:FILE, docker-archive:FILE, or a directory with manifests/ and metadata/',
    ),
    argument('<reference>', 'image reference to push to'),
  ],
  flags: { signBy: signByFlag },
  examples: {
    'Build and push the image of a directory':
      'opmate bundle push ./bundle registry.example.com/demo/bundle:new',
    'Push a saved image': 'opmate bundle push oci:layout:v1 registry.example.com/demo/bundle:new',
  },
  async runInSession({ context, args: [source, target], options, session }) {
    const signingKey = await readSignBy(options, context);
    const { findings, name, built } = await pushBundle(source, target, session, {
      signingKey,
      onPrepared: (prepared) => logPrepared(session, prepared),
    });
    if (findings.length > 0) return endWithFindings({ context, session }, findings);
    const to = parseReference(target);
    if (built !== undefined) await finishBundle(context, session, { files: [], images: [built] }, options);
    else {
      reportEnding(
        session.logger,
        [`pushed ${to.text}`],
        nextAfterImage({ to, name }, nextAfterBundle, options),
      );
      await writeAll(context.stdout, `${name}\n`);
    }
    return exitCodes.done;
  },
});
