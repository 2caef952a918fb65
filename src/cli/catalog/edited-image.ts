import type { EditedCatalogImage } from '../../api/images/edited-index.js';
import type { CommandContext } from '../context.js';
import { reportEnding, summarizeItems } from '../ending.js';
import { describeOutput } from '../index/image-output.js';
import { writeAll } from '../output.js';
import type { CommandSession } from '../session.js';

/** Logs the changes of an index image, and prints it by digest. */
export async function reportEditedImage(
  context: CommandContext,
  { logger, signal }: CommandSession,
  { images, changes }: EditedCatalogImage,
): Promise<void> {
  reportEnding(logger, [...summarizeItems(changes, 'change', logger), ...images.map(describeOutput)]);
  await writeAll(context.stdout, images.map(({ name }) => `${name}\n`).join(''), signal);
}
