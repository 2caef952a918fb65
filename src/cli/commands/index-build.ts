import { editDatabase } from '../../sqlite/edit.js';
import type { CommandContext } from '../context.js';
import { type IndexImageFlags, editIndex } from './index-edit.js';

/** `opmate index build`: makes the image of a database file, which stays as it is. */
export async function indexBuild(
  context: CommandContext,
  file: string,
  options: IndexImageFlags,
): Promise<number> {
  return editIndex(context, options, (session, index) =>
    editDatabase(file, { outputFile: index.file, signal: session.signal }, () => undefined),
  );
}
