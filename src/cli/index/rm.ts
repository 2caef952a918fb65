import { UsageError } from '../../core/errors.js';
import { argument } from '../command/declaration.js';
import { type FlagValues, list } from '../command/flags.js';
import { requireFlag } from '../command/require-flag.js';
import { listAndDatabase, permissiveFlag } from '../registry/database.js';
import {
  type EditedDatabase,
  type IndexEdit,
  editCommands,
  logRemoved,
  logSkipped,
} from './edit-commands.js';

/** Flags of the commands that remove packages; `-o` is their name in `opm`. */
export const removeFlags = {
  package: list('name', 'packages to remove', {
    aliases: ['packages', 'operators', 'o'],
    group: 'Selection',
  }),
  permissive: permissiveFlag,
};

type RemoveOptions = FlagValues<typeof removeFlags>;

/** Argument of the commands of `registry` that remove packages. */
export const removeArguments = [argument('[package]', 'name of the package')];

/** `opmate registry rm` and `opmate index rm`. */
export const { registryCommand, command } = editCommands(
  {
    name: 'rm',
    tool: 'opm',
    flags: removeFlags,
    examples: {
      'Remove a package': '--package demo',
    },
    plan: createRemoval,
  },
  { summary: 'remove packages', arguments: removeArguments, read: readRemovedPackages },
  { summary: 'remove packages from an index image' },
);

/** Reads the packages and the database from arguments or flags. Throws UsageError. */
export function readRemovedPackages<O extends RemoveOptions>(
  words: readonly (string | undefined)[],
  options: O,
): EditedDatabase<O> {
  const { package: packages } = options;
  const { list: named = packages, file } = listAndDatabase(words, 'packages', packages && '--package');
  if (named?.length === 0)
    throw new UsageError('no package named', { hint: 'specify the packages to remove' });
  return { file, args: [], options: { ...options, package: named } };
}

/** Returns the edit that removes packages. Throws UsageError if no package is named. */
export function createRemoval({ package: packages, permissive }: RemoveOptions): IndexEdit<'remove'> {
  const names = requireFlag(packages, '--package', 'NAME,…');
  return {
    change: { kind: 'remove', packages: names, permissive },
    report(logger, name, report) {
      const errors = report.failures.map(({ error }) => error);
      logSkipped(logger, errors);
      logRemoved(logger, name, report);
    },
  };
}
