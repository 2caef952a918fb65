import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

export async function registryDeprecateTruncate(
  context: CommandContext,
  options: GlobalOptions,
): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `registry-deprecate-truncate: not there yet`, {
    cause: [context, options],
  });
}
