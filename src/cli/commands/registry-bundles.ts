import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

export async function registryBundles(
  context: CommandContext,
  file: string,
  options: GlobalOptions,
): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `registry-bundles ${file}: not there yet`, {
    cause: [context, options],
  });
}
