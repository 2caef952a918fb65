import { buildBundleImages, prepareBundle, type PrepareOptions } from '../../bundle/author/build.js';
import { type BundleRequest, shownPath } from '../../bundle/author/generate.js';
import { replaceFiles } from '../../files/replace-file.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { reportEnding } from '../ending.js';
import { type ImageOutput, type StoredImage, openBase, putImages } from '../../api/images/image-output.js';
import { describeOutput, nextAfterImage } from '../index/image-output.js';
import { writeAll } from '../output.js';
import { count } from '../printable.js';
import type { CommandSession } from '../session.js';
import { tellFindings, tellWarnings } from './findings.js';

/** Returns the command that usually follows a bundle image in a registry. */
export function nextAfterBundle(image: string): string {
  return `opmate catalog add CATALOG ${image}`;
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
      const stored: StoredImage[] = [];
      const putAll = async (): Promise<void> => {
        for (const output of outputs) stored.push(await putImages(session, output, images, directory));
      };
      await replaceFiles(prepared.files, { signal, then: putAll });
      const files = prepared.files.map(({ target }) => shownPath(request.workingDirectory, target));
      const written = files.length <= 3 ? files.join(', ') : count(files.length, 'file');
      const [first] = outputs as [ImageOutput];
      reportEnding(
        logger,
        [...(files.length > 0 ? [`wrote ${written}`] : []), ...stored.map(describeOutput)],
        nextAfterImage(first, nextAfterBundle, 'opmate bundle push'),
      );
      await writeAll(context.stdout, stored.map(({ name }) => `${name}\n`).join(''));
      return exitCodes.done;
    } finally {
      await base.close();
    }
  });
}
