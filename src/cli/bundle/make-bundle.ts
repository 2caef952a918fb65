import { buildBundleImages, prepareBundle, type PrepareOptions } from '../../bundle/author/build.js';
import { type BundleRequest, shownPath } from '../../bundle/author/generate.js';
import { replaceFiles } from '../../files/replace-file.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { type ImageOutput, openBase, putImages } from '../index/image-output.js';
import { writeAll } from '../output.js';
import type { CommandSession } from '../session.js';
import { tellFindings, tellWarnings } from './findings.js';

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
