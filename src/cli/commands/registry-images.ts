import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

export async function registryImages(context: CommandContext, options: GlobalOptions): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `registry-images: not there yet`, { cause: [context, options] });
}
