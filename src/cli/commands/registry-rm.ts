import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

export async function registryRemove(
  context: CommandContext,
  packageName: string | undefined,
  file: string | undefined,
  options: GlobalOptions,
): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `registry-rm ${packageName} ${file}: not there yet`, {
    cause: [context, options],
  });
}
