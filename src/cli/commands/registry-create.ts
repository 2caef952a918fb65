import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

export async function registryCreate(
  context: CommandContext,
  file: string,
  options: GlobalOptions,
): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `registry-create ${file}: not there yet`, {
    cause: [context, options],
  });
}
