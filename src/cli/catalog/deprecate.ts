import { argument, defineCommand } from '../command/declaration.js';
import { type FlagValues, flag, required, requiredUnless, text } from '../command/flags.js';
import { editDryRun } from '../command/shared-flags.js';
import { decodeUtf8 } from '../../document/go-json.js';
import { deprecateInCatalog } from '../../api/edit-catalog.js';
import { reportEdit } from './edit.js';
import type { CommandContext } from '../context.js';
import { readInput } from '../input.js';

const flags = {
  package: required(
    text('name', 'package; deprecated itself if neither channel nor bundle is given', { short: 'p' }),
  ),
  channel: text('name', 'channel to deprecate'),
  bundle: text('name', 'bundle to deprecate'),
  message: requiredUnless(
    ['messageFile', 'undo'],
    text('text', 'deprecation message', { excludes: ['messageFile', 'undo'] }),
  ),
  messageFile: text('file', 'file with the deprecation message; - for stdin', { excludes: ['undo'] }),
  undo: flag('remove the deprecation'),
  dryRun: editDryRun,
};

/** `opmate catalog deprecate`. */
export const command = defineCommand({
  summary: 'deprecate a package, channel or bundle',
  arguments: [argument('<directory>', 'catalog directory')],
  flags,
  examples: {
    'Deprecate a channel':
      'opmate catalog deprecate ./catalog --package demo --channel alpha --message "use stable"',
    'Remove the deprecation': 'opmate catalog deprecate ./catalog --package demo --channel alpha --undo',
  },
  async runInSession({ context, args: [directory], options, session }) {
    const message = await getMessage(context, options);
    const edit = await deprecateInCatalog(directory, session, { ...options, message });
    return reportEdit(context, session, directory, options, edit);
  },
});

/** Returns the message; undefined to remove the deprecation. Throws UsageError. */
async function getMessage(
  context: CommandContext,
  options: FlagValues<typeof flags>,
): Promise<string | undefined> {
  const { message, messageFile } = options;
  if (messageFile === undefined) return message;
  return decodeUtf8(await readInput(messageFile, context)).replace(/\r?\n$/, '');
}
