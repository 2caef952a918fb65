import { flag, grouped, list, text } from '../command/flags.js';
import { permissiveFlag } from './database.js';

/** Flags of the commands that add bundles to a database or index image. */
export const addFlags = {
  fromFile: text('file', 'file with one bundle per line, # begins a comment; - for stdin', {
    group: 'Input',
  }),
  pullFrom: list(
    'prefix=other',
    'pull images of one prefix from another; the index keeps the original name',
    { group: 'Registry' },
  ),
  ...grouped('Behavior', {
    requireDigest: flag('refuse images without a digest'),
    // The value is checked by `planAdd`, in the words of opm.
    mode: text('mode', 'update mode of channels', {
      choices: ['replaces', 'semver', 'semver-skippatch'],
      default: 'replaces',
    }),
    overwriteLatest: flag('replace channel heads with bundles of the same name'),
    enableAlpha: flag('allow bundles that substitute for others'),
  }),
  permissive: permissiveFlag,
  ...grouped('Output', {
    minimal: flag('store the manifests of channel heads only'),
    allInOne: flag('store the manifests of all bundles in every mode'),
  }),
};
