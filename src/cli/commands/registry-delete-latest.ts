import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

export async function registryDeleteLatest(
  context: CommandContext,
  packageName: string,
  file: string | undefined,
  options: GlobalOptions,
): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `registry-delete-latest ${packageName} ${file}: not there yet`, {
    cause: [context, options],
  });
}
