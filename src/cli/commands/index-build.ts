import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

export async function indexBuild(
  context: CommandContext,
  file: string,
  options: GlobalOptions,
): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `index-build ${file}: not there yet`, { cause: [context, options] });
}
