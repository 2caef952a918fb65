import { readMirrorInventory } from '../../api/mirror-inventory.js';
import { invalidValue } from '../../core/errors.js';
import { parseMirrorTarget } from '../../mirror/naming/mirror-target.js';
import { encodeInventory, computeInventoryId, summarizeInventory } from '../../mirror/inventory/inventory.js';
import { isRepositoryName } from '../../oci/registry/registry-names.js';
import { argument, defineCommand } from '../command/declaration.js';
import { grouped, repeated, text } from '../command/flags.js';
import { exitCodes } from '../exit-codes.js';
import { amountOfBytes, count, shellWord } from '../printable.js';
import { lockFlags, mirrorFlags } from './flags.js';
import { readNamedLock } from '../../api/mirror/find-lock.js';
import { readMirrorOptions } from './oc-mirror-flags.js';
import { writeTo } from './options.js';

/** `opmate mirror inventory`. */
export const command = defineCommand({
  summary: 'write an inventory of a registry for --base',
  arguments: [argument('<destination>', 'docker://REGISTRY[/PATH]')],
  inherits: mirrorFlags,
  flags: {
    ...grouped('Selection', {
      repository: repeated('name', 'read this repository below the destination (default: all)'),
      lock: text('file', 'read the repositories of this lock, archive or workspace'),
    }),
    maxNestedPaths: lockFlags.maxNestedPaths,
    to: text('file', 'write to this file (default: stdout)', { group: 'Output' }),
  },
  examples: {
    'Write the inventory of a disconnected registry':
      'opmate mirror inventory docker://registry.example.com/mirror --to inventory.json',
    'Mirror only missing content to disk':
      'opmate mirror -c imageset.yaml file://carry --base inventory.json',
    'Read the repositories of an archive from a registry that does not list them':
      'opmate mirror inventory docker://registry.example.com/demo-mirror --lock archive',
  },
  readOptions: ({ context, args: [destination], options }) =>
    readMirrorOptions(options, [destination], context),
  async runInSession({ context, args: [destination], options, session }) {
    parseMirrorTarget(destination);
    const repositories = options.repository ?? [];
    for (const name of repositories) {
      if (isRepositoryName(name)) continue;
      throw invalidValue('--repository', name, 'not a repository name', {
        hint: 'use the path below the destination, without registry and tag: ns/name',
      });
    }
    const { maxNestedPaths, maxPerRegistry } = options;
    const locks = options.lock === undefined ? undefined : [await readNamedLock(options.lock, session)];
    const inventory = await readMirrorInventory(destination, session, {
      repositories: repositories.length === 0 ? undefined : repositories,
      locks,
      maxNestedPaths,
      maxPerRegistry,
    });
    const encoded = encodeInventory(inventory);
    const { repositories: number, tags, manifests, blobs, bytes } = summarizeInventory(inventory);
    session.logger.close();
    const amounts = [
      count(number, 'repository'),
      ...[count(tags, 'tag'), count(manifests, 'manifest'), count(blobs, 'blob'), amountOfBytes(bytes)],
    ];
    const size = amountOfBytes(Buffer.byteLength(encoded));
    session.logger.log('info', `inventory ${computeInventoryId(inventory)}: ${amounts.join(', ')}`);
    await writeTo(options.to, encoded, context, session.logger, (file) => [
      `wrote ${file}, ${size}`,
      `opmate mirror -c CONFIG file://DIR --base ${shellWord(file)}`,
    ]);
    return exitCodes.done;
  },
});
