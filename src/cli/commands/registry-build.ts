import { OpmateError } from '../../core/errors.js';
import type { CommandContext, GlobalOptions } from '../context.js';

/** `opmate registry build`: a catalog image of packages of an app registry, a directory or a list. */
export function registryBuild(context: CommandContext, options: GlobalOptions): Promise<void> {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [context, options] });
}
