import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

/** `opmate archive verify`: reads all of an archive and reports what is damaged or missing. */
export function archiveVerify(
  context: CommandContext,
  directory: string,
  options: GlobalOptions,
): Promise<number> {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [context, directory, options] });
}
