import { createManifestFetcher, parsePullFrom } from '../../source/bundles.js';
import type { DeleteReport } from '../../sqlite/remove/delete-bundle.js';
import { deleteLatest } from '../../sqlite/remove/delete-latest.js';
import { argument } from '../command/declaration.js';
import { type FlagValues, flag } from '../command/flags.js';
import { logDeleted, pullFromFlag } from './deleted-bundles.js';
import { databaseEdit, imageEdit } from './edit-commands.js';
import type { IndexEdit } from './index-edit.js';

const flags = {
  eachChannel: flag('remove every channel head instead of the newest version only', { group: 'Selection' }),
  pullFrom: pullFromFlag,
};

const deletion = {
  name: 'delete-latest',
  arguments: [argument('<package>', 'package')],
  flags,
  examples: [['Remove the newest version', 'demo']],
  plan: planDeleteLatest,
} as const;

/** `opmate registry delete-latest`. */
export const registryCommand = databaseEdit({
  ...deletion,
  summary: 'remove the newest version of a package',
});

/** `opmate index delete-latest`. */
export const command = imageEdit({
  ...deletion,
  summary: 'remove the newest version of a package from an index image',
});

function planDeleteLatest(
  { eachChannel, pullFrom = [] }: FlagValues<typeof flags>,
  [packageName]: readonly (string | undefined)[],
): IndexEdit<DeleteReport> {
  const replacements = parsePullFrom(pullFrom);
  return {
    change(database, session) {
      const fetchManifests = createManifestFetcher(session, { pullFrom: replacements });
      return deleteLatest(database, packageName as string, fetchManifests, { eachChannel });
    },
    report: logDeleted,
  };
}
