import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { type PrepareOptions, buildBundleImages, prepareBundle } from '../../bundle/author/build.js';
import { type BundleRequest, shownPath } from '../../bundle/author/generate.js';
import { replaceFiles } from '../../files/replace-file.js';
import { OpmateError } from '../../core/errors.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { booleanOf } from '../options.js';
import { writeAll } from '../output.js';
import { type CommandSession, useSession } from '../session.js';
import { tellFindings, tellWarnings } from './findings.js';
import { type BundleAuthorOptions, requestOf } from './generate.js';
import {
  type ImageOutput,
  type ImageOutputFlags,
  checkImageOutput,
  openBase,
  planImageOutputs,
  putImages,
} from '../index/image-output.js';

interface BundleBuildOptions extends BundleAuthorOptions, ImageOutputFlags {
  imageBuilder?: string;
}

/**
 * `opmate bundle build`: the image of a bundle, pushed or saved. Prints what it is called, by digest. All that speaks
 * against the bundle goes to stderr, with the exit code `refused`, and then nothing is written.
 */
export async function bundleBuild(
  context: CommandContext,
  given: BundleAuthorOptions,
  refused: number,
): Promise<number> {
  const options = given as BundleBuildOptions;
  const request = await atManifests(requestOf(context, options));
  const outputs = planImageOutputs(options);
  const { imageBuilder } = options;
  if (imageBuilder !== undefined && !['docker', 'podman', 'buildah'].includes(imageBuilder))
    throw new OpmateError('INVALID', `${imageBuilder} is not supported image builder`);
  return useSession(context, options, async (session) => {
    if (imageBuilder !== undefined) {
      session.logger.log(
        'info',
        `--image-builder ${imageBuilder} is ignored: opmate builds images without an engine`,
      );
    }
    for (const output of outputs) await checkImageOutput(output);
    return makeBundle(context, session, request, outputs, refused, {
      overwrite: booleanOf(options, 'overwrite'),
    });
  });
}

/** Builds what a request asks for, and prints what it is called. Returns the exit code. */
export async function makeBundle(
  context: CommandContext,
  session: CommandSession,
  request: BundleRequest,
  outputs: readonly ImageOutput[],
  refused: number,
  options: PrepareOptions,
): Promise<number> {
  const { logger, signal, followLinks } = session;
  const prepared = await prepareBundle(request, { ...options, signal, followLinks });
  for (const sentence of prepared.inferred) logger.log('info', sentence);
  tellWarnings(session, prepared.warnings);
  if (prepared.findings.length > 0) {
    logger.close();
    await tellFindings(context, prepared.findings);
    return refused;
  }
  return withTemporaryDirectory(session, async (directory) => {
    const base = await openBase(session, prepared.baseImage, '--base-image');
    try {
      const { platform } = session;
      const images = await buildBundleImages(prepared, { bases: base.images, platform, directory, signal });
      let made = '';
      const putAll = async (): Promise<void> => {
        for (const output of outputs) made += `${await putImages(session, output, images, directory)}\n`;
      };
      await replaceFiles(prepared.files, { signal, then: putAll });
      for (const { target } of prepared.files)
        logger.log('info', `wrote ${shownPath(request.workingDirectory, target)}`);
      logger.close();
      await writeAll(context.stdout, made);
      return exitCodes.done;
    } finally {
      await base.close();
    }
  });
}

/** A directory in which a bundle stands as a whole is as good as that of its manifests. */
async function atManifests(request: BundleRequest): Promise<BundleRequest> {
  const { directory } = request;
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  if (!entries.some((entry) => entry.name === 'manifests' && entry.isDirectory())) return request;
  return { ...request, directory: path.join(directory, 'manifests') };
}
