import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

export async function registryAdd(
  context: CommandContext,
  images: string | undefined,
  file: string | undefined,
  options: GlobalOptions,
): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `registry-add ${images} ${file}: not there yet`, {
    cause: [context, options],
  });
}
