import type { BuiltBundle } from '../../api/bundle/build-bundle.js';
import type { StoredImage } from '../../api/images/image-output.js';
import { shownPath } from '../../core/text/paths.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { reportEnding } from '../ending.js';
import { describeOutput, nextAfterImage } from '../index/image-output.js';
import { writeAll } from '../output.js';
import { count } from '../printable.js';
import type { CommandSession } from '../session.js';
import { logWarnings } from './findings.js';

/** Returns the command that usually follows a bundle image in a registry. */
export function nextAfterBundle(image: string): string {
  return `opmate catalog add CATALOG ${image}`;
}

/** Logs inferred values of a bundle, and its warnings. */
export function logPrepared(
  session: CommandSession,
  { inferred, warnings }: { inferred: readonly string[]; warnings: readonly Diagnostic[] },
): void {
  for (const sentence of inferred) session.logger.log('info', sentence);
  logWarnings(session, warnings);
}

/** Reports files and images of a bundle, and prints the images by digest. */
export async function finishBundle(
  { workingDirectory, stdout }: CommandContext,
  { logger }: CommandSession,
  { files, images }: Pick<BuiltBundle, 'files' | 'images'>,
  options: GlobalOptions & { tag?: string | undefined },
): Promise<void> {
  const names = files.map((file) => shownPath(workingDirectory, file));
  const written = names.length <= 3 ? names.join(', ') : count(names.length, 'file');
  reportEnding(
    logger,
    [...(names.length > 0 ? [`wrote ${written}`] : []), ...images.map(describeOutput)],
    nextAfterImage(images[0] as StoredImage, nextAfterBundle, options, 'opmate bundle push'),
  );
  await writeAll(stdout, images.map(({ name }) => `${name}\n`).join(''));
}
