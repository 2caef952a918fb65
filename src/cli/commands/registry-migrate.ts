import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

export async function registryMigrate(
  context: CommandContext,
  file: string,
  options: GlobalOptions,
): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `registry-migrate ${file}: not there yet`, {
    cause: [context, options],
  });
}
