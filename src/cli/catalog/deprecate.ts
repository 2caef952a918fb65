import { argument, defineCommand } from '../command/declaration.js';
import { type FlagValues, flag, requiredUnless, text } from '../command/flags.js';
import { editDryRun } from '../command/shared-flags.js';
import { decodeUtf8 } from '../../document/go-json.js';
import { deprecateInCatalog } from '../../api/edit-catalog.js';
import { reportEdit } from './edit.js';
import { reportEditedImage } from './edited-image.js';
import { deprecateInImage } from '../../api/images/edit-catalog-image.js';
import { exitCodes } from '../exit-codes.js';
import { imageOutputFlagsWith, planSignedOutputs } from '../index/image-output.js';
import type { CommandContext } from '../context.js';
import { readInput } from '../input.js';

const flags = {
  package: requiredUnless(
    ['schema'],
    text('name', 'package; deprecated itself if neither channel nor bundle is given', { short: 'p' }),
  ),
  channel: text('name', 'channel to deprecate'),
  bundle: text('name', 'bundle to deprecate'),
  message: requiredUnless(
    ['messageFile', 'undo', 'schema'],
    text('text', 'deprecation message', { excludes: ['messageFile', 'undo'] }),
  ),
  messageFile: text('file', 'file with the deprecation message; - for stdin', { excludes: ['undo'] }),
  undo: flag('remove the deprecation'),
  dryRun: editDryRun,
  schema: text('file', 'olm.deprecations blob for an index image', {
    needs: ['tag', 'save'],
    excludes: ['package', 'channel', 'bundle', 'message', 'messageFile', 'undo', 'dryRun'],
  }),
  ...imageOutputFlagsWith('schema'),
};

/** `opmate catalog deprecate`. */
export const command = defineCommand({
  summary: 'deprecate a package, channel or bundle',
  arguments: [argument('<directory>', 'catalog directory, or index image')],
  flags,
  examples: {
    'Deprecate a channel':
      'opmate catalog deprecate ./catalog --package demo --channel alpha --message "use stable"',
    'Remove the deprecation': 'opmate catalog deprecate ./catalog --package demo --channel alpha --undo',
    'Deprecate bundles of an index image':
      'opmate catalog deprecate registry.example.com/demo/built-index:v4.21 --schema deprecations.json -t registry.example.com/demo/index-with-deprecations:v1',
  },
  async runInSession({ context, args: [directory], options, session }) {
    const { schema: file } = options;
    if (file !== undefined) {
      const outputs = await planSignedOutputs(options, context);
      const schema = { text: decodeUtf8(await readInput(file, context)), file };
      const edited = await deprecateInImage(directory, schema, session, { outputs });
      await reportEditedImage(context, session, edited);
      return exitCodes.done;
    }
    const message = await getMessage(context, options);
    const edit = await deprecateInCatalog(directory, session, {
      ...options,
      package: options.package ?? '',
      message,
    });
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
