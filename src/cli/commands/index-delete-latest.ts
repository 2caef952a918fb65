import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

export async function indexDeleteLatest(
  context: CommandContext,
  packageName: string,
  options: GlobalOptions,
): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `index-delete-latest ${packageName}: not there yet`, {
    cause: [context, options],
  });
}
