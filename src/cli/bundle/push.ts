import { argument, defineCommand } from '../command/declaration.js';
import path from 'node:path';
import { OpmateError, UsageError } from '../../core/errors.js';
import { type Reference, parseReference, parseTargetReference } from '../../core/reference.js';
import { imageLabels } from '../../model/image-labels.js';
import { copyImage } from '../../oci/image/copy.js';
import { openImage } from '../../oci/image/image.js';
import { openReference, openTarget } from '../../oci/image/open.js';
import { getSubject } from '../../oci/image/platform.js';
import { statIfPresent } from '../../files/file-status.js';
import { reportEnding } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { attachToStored } from '../../api/images/image-output.js';
import { nextAfterImage, readSignBy } from '../index/image-output.js';
import { signByFlag } from '../index/image-output-flags.js';
import { useSession } from '../session.js';
import { makeBundle, nextAfterBundle } from './make-bundle.js';

/**
 * `opmate bundle push`: the image of a bundle, byte for byte as it was saved, or built of a directory that has
 * manifests and metadata. Prints what it is called, by digest.
 */
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
  examples: [
    [
      'Build and push the image of a directory',
      'opmate bundle push ./bundle registry.example.com/demo/bundle:new',
    ],
    ['Push an image that was saved', 'opmate bundle push oci:layout:v1 registry.example.com/demo/bundle:new'],
  ],
  async run({ context, args: [source, target], options }) {
    const to = getTarget(target);
    const output = { to, signingKey: await readSignBy(options, context) };
    const stats = await statIfPresent(source);
    return useSession(context, options, async (session) => {
      if (stats?.isDirectory() === true) {
        const { workingDirectory } = context;
        const directory = path.resolve(workingDirectory, source, 'manifests');
        const request = { directory, packageName: '', channels: '', defaultChannel: '', workingDirectory };
        return makeBundle(context, session, request, [output], exitCodes.findings, {
          readsOnly: true,
        });
      }
      const from = parseReference(source);
      if (stats !== undefined || from.transport === 'docker') {
        throw new UsageError(`${source}: not a directory, and no saved image`, {
          hint:
            stats === undefined
              ? 'write oci:DIR:TAG, oci-archive:FILE or docker-archive:FILE; between registries copy with opmate oci copy'
              : `write oci-archive:${source} or docker-archive:${source}`,
        });
      }
      const opened = await openReference(from, session);
      try {
        const { labels } = await openImage(opened.repository, opened.reference, session);
        if (labels[imageLabels.bundlePackage] === undefined) {
          throw new OpmateError('INVALID', `${source}: not the image of a bundle`, {
            hint: `it has no label ${imageLabels.bundlePackage}; other images are copied with opmate oci copy`,
          });
        }
        const place = await openTarget(to, session);
        try {
          const { descriptor } = await copyImage(
            opened.repository,
            opened.reference,
            place.repository,
            place.reference,
            session,
          );
          await attachToStored(session, place.repository, descriptor, output);
          reportEnding(session.logger, [`pushed ${to.text}`], nextAfterImage({ to }, nextAfterBundle));
          await writeAll(context.stdout, `${getSubject(place.repository.name, descriptor.digest)}\n`);
          return exitCodes.done;
        } finally {
          await place.close();
        }
      } finally {
        await opened.close();
      }
    });
  },
});

function getTarget(text: string): Reference {
  const reference = parseTargetReference(text);
  if (reference.transport === 'docker' && reference.tag !== undefined && reference.digest === undefined)
    return reference;
  throw new UsageError(`${text}: not a tag in a registry`, {
    hint: 'name the target, e.g. registry.example.com/ns/bundle:v1',
  });
}
