import { UsageError } from '../../core/errors.js';
import { createManifestFetcher, parsePullFrom } from '../../source/bundles.js';
import { deleteBundle } from '../../sqlite/remove/delete-bundle.js';
import { type FlagValues, text } from '../command/flags.js';
import { logDeleted, pullFromFlag } from './deleted-bundles.js';
import { type EditedDatabase, databaseEdit, imageEdit } from './edit-commands.js';
import type { IndexEdit } from './index-edit.js';
import { planRemove, readPackages, removeArguments, removeFlags } from './rm.js';

const flags = {
  ...removeFlags,
  bundle: text('name', 'remove one bundle and rewire edges around it', { group: 'Selection' }),
  pullFrom: pullFromFlag,
};

type DeleteOptions = FlagValues<typeof flags>;

const deletion = {
  name: 'delete',
  flags,
  examples: [
    ['Remove a package', '--package demo'],
    ['Remove one bundle', '--bundle demo.v1.1.0'],
  ],
  plan: planDelete,
} as const;

/** `opmate registry delete`. */
export const registryCommand = databaseEdit({
  ...deletion,
  arguments: removeArguments,
  summary: 'remove packages, or one bundle',
  read: readDeleted,
});

/** `opmate index delete`. */
export const command = imageEdit({
  ...deletion,
  summary: 'remove packages, or one bundle, from an index image',
});

function readDeleted(
  words: readonly (string | undefined)[],
  options: DeleteOptions,
): EditedDatabase<DeleteOptions> {
  if (options.bundle === undefined) return readPackages(words, options);
  const [file, ...more] = words;
  if (more.some((word) => word !== undefined)) throw bundleWithPackages();
  return { file, args: [], options };
}

function planDelete(options: DeleteOptions): IndexEdit<unknown> {
  const { bundle, package: packages, pullFrom = [] } = options;
  if (bundle === undefined) return planRemove(options);
  if (packages !== undefined) throw bundleWithPackages();
  const replacements = parsePullFrom(pullFrom);
  return {
    change(database, session) {
      const fetchManifests = createManifestFetcher(session, { pullFrom: replacements });
      return deleteBundle(database, bundle, { fetchManifests });
    },
    report: logDeleted,
  };
}

function bundleWithPackages(): UsageError {
  return new UsageError('--bundle removes one bundle, and no package', { hint: 'remove the packages' });
}
