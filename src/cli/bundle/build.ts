import { defineCommand } from '../command/declaration.js';
import { flag } from '../command/flags.js';
import { authorFlags, imageBuilderFlag, parseRequest } from './author-flags.js';
import { finishBundle, logPrepared } from './bundle-ending.js';
import { endWithFindings } from './findings.js';
import { buildBundle } from '../../api/bundle/build-bundle.js';
import { OpmateError } from '../../core/errors.js';
import { exitCodes } from '../exit-codes.js';
import { imageOutputFlags, planImageOutputs, readSignBy } from '../index/image-output.js';

const builders = ['docker', 'podman', 'buildah'];

/**
 * `opmate bundle build`; prints the image by digest. On findings, nothing is written and the exit code is 3, in
 * `alpha bundle` 1.
 */
export const command = defineCommand({
  summary: 'build the image of a bundle, without a container engine',
  description:
    'Missing annotations are generated for the image. Only the image is written; --to also writes copies ' +
    'and annotations, --overwrite the Dockerfile too. An existing bundle.Dockerfile sets the base image, labels and ' +
    'further directories to copy. The same files produce the same digest.',
  flags: {
    ...authorFlags,
    ...imageOutputFlags,
    overwrite: flag('overwrite existing annotations, Dockerfile and copies', {
      aliases: ['o'],
      group: 'Output',
    }),
    imageBuilder: imageBuilderFlag(builders),
  },
  commonFlags: [
    'package',
    'channel',
    'default',
    'directory',
    'tag',
    'push',
    'save',
    'to',
    'baseImage',
    'overwrite',
  ],
  examples: {
    'Build and push an image': 'opmate bundle build -d ./bundle -t registry.example.com/demo/bundle:new',
    'Save the image to a layout directory': 'opmate bundle build -d ./bundle --save oci:bundle-image:v1',
  },
  async runInSession({ context, options, tool, session }) {
    const request = parseRequest(options);
    const planned = planImageOutputs(options);
    const signingKey = await readSignBy(options, context, planned);
    const outputs = planned.map((output) => ({ ...output, signingKey }));
    const { imageBuilder } = options;
    if (imageBuilder !== undefined && !builders.includes(imageBuilder))
      throw new OpmateError('INVALID', `${imageBuilder} is not supported image builder`);
    if (imageBuilder !== undefined) {
      session.logger.log(
        'info',
        `--image-builder ${imageBuilder} is ignored: opmate builds images without an engine`,
      );
    }
    const built = await buildBundle(request, outputs, session, {
      overwrite: options.overwrite,
      onPrepared: (prepared) => logPrepared(session, prepared),
    });
    if (built.findings.length > 0) return endWithFindings({ context, session, tool }, built.findings);
    await finishBundle(context, session, built, options);
    return exitCodes.done;
  },
});
