import { planDeprecate } from '../../catalog/edit/plan-deprecate.js';
import { UsageError } from '../../core/errors.js';
import { decodeUtf8 } from '../../document/go-json.js';
import { editCatalog } from './edit.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { readInput } from '../input.js';
import { requireFlag } from '../options.js';
import { useSession } from '../session.js';

interface CatalogDeprecateOptions extends GlobalOptions {
  dryRun?: boolean;
  undo?: boolean;
  package?: string;
  channel?: string;
  bundle?: string;
  message?: string;
  messageFile?: string;
}

/** `opmate catalog deprecate`: a package, channel or bundle of a catalog directory is told as deprecated, or not any more. */
export async function catalogDeprecate(
  context: CommandContext,
  directory: string,
  given: GlobalOptions,
): Promise<number> {
  const options = given as CatalogDeprecateOptions;
  const name = requireFlag(options.package, 'package');
  const { channel, bundle } = options;
  const message = await messageOf(context, options);
  return useSession(context, options, (session) =>
    editCatalog(context, session, directory, options, (catalog) =>
      planDeprecate(catalog, { package: name, channel, bundle, message }),
    ),
  );
}

/** Undefined to take a deprecation back. */
async function messageOf(
  context: CommandContext,
  options: CatalogDeprecateOptions,
): Promise<string | undefined> {
  const { message, messageFile } = options;
  const isUndone = options.undo === true;
  const given = [message !== undefined, messageFile !== undefined, isUndone].filter(Boolean).length;
  if (given !== 1) {
    throw new UsageError(
      given === 0
        ? 'use one of --message, --message-file and --undo'
        : '--message, --message-file and --undo cannot be used together',
    );
  }
  if (messageFile === undefined) return message;
  return decodeUtf8(await readInput(messageFile, context)).replace(/\r?\n$/, '');
}
