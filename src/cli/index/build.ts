import { editDatabase } from '../../sqlite/schema/edit.js';
import type { CommandContext } from '../context.js';
import type { CommandSession } from '../session.js';
import { type EditedIndex, type IndexImageFlags, editIndex } from './edit.js';

/** `opmate index build`: makes the image of a database file, which stays as it is. */
export async function indexBuild(
  context: CommandContext,
  file: string,
  options: IndexImageFlags,
): Promise<number> {
  const build = (session: CommandSession, index: EditedIndex): Promise<void> =>
    editDatabase(file, { outputFile: index.file, signal: session.signal }, () => undefined);
  return editIndex(context, options, build, file);
}
