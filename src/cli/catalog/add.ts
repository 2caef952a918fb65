import { argument, defineCommand } from '../command/declaration.js';
import { choice, flag, list, text } from '../command/flags.js';
import { editDryRun, imageTemplate, migrateLevel } from '../command/shared-flags.js';
import { addToCatalog } from '../../api/edit-catalog.js';
import { reportEdit } from './edit.js';

/** `opmate catalog add`. */
export const command = defineCommand({
  summary: 'add bundles to channels of a catalog; other blobs are left unchanged',
  arguments: [
    argument('<directory>', 'catalog directory'),
    argument('<bundles...>', 'bundle: image, layout, archive or directory'),
  ],
  flags: {
    channel: list('name', 'channels to add to (default: those of the bundles)', { aliases: ['channels'] }),
    mode: choice('mode', ['replaces', 'semver', 'semver-skippatch'], 'update mode of channels', {
      default: 'replaces',
    }),
    replaces: text('bundle', 'bundle to replace (default: as declared); "" for none'),
    skips: list('bundle', 'bundles to skip (default: as declared, in replaces mode); "" for none', {
      mayBeNone: true,
    }),
    skipRange: text('range', 'versions to skip (default: as declared); "" for none'),
    defaultChannel: text('name', 'new default channel'),
    migrateLevel,
    alphaImageRefTemplate: imageTemplate('bundles that are not from a registry'),
    overwrite: flag('replace bundles that already exist'),
    dryRun: editDryRun,
  },
  commonFlags: ['channel', 'mode', 'replaces', 'skips', 'skipRange', 'defaultChannel', 'overwrite', 'dryRun'],
  examples: {
    'Add a release to a channel':
      'opmate catalog add ./catalog registry.example.com/demo/bundle:v1.3.0 --channel stable',
    'Show the changes first':
      'opmate catalog add ./catalog registry.example.com/demo/bundle:v1.3.0 --channel stable --dry-run',
  },
  async runInSession({ context, args: [directory, references], options, session }) {
    const { channel: channels, alphaImageRefTemplate: imageTemplate } = options;
    const settings = { ...options, channels, imageTemplate };
    const edit = await addToCatalog(directory, references, session, settings);
    return reportEdit(context, session, directory, options, edit);
  },
});
