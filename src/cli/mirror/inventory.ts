import { readMirrorInventory } from '../../api/mirror-inventory.js';
import { argument, defineCommand } from '../command/declaration.js';
import { grouped, repeated, text as textFlag } from '../command/flags.js';
import { exitCodes } from '../exit-codes.js';
import { amountOfBytes, count, shellWord } from '../printable.js';
import { lockFlags, mirrorFlags } from './flags.js';
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
      lock: textFlag('file', 'read the repositories of this lock, archive or workspace'),
    }),
    maxNestedPaths: lockFlags.maxNestedPaths,
    to: textFlag('file', 'write to this file (default: stdout)', { group: 'Output' }),
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
    const { repository: repositories, lock, maxNestedPaths, maxPerRegistry } = options;
    const { id, text, amounts } = await readMirrorInventory(destination, session, {
      repositories,
      locks: lock === undefined ? undefined : [lock],
      maxNestedPaths,
      maxPerRegistry,
    });
    session.logger.close();
    const counts = [
      count(amounts.repositories, 'repository'),
      count(amounts.tags, 'tag'),
      count(amounts.manifests, 'manifest'),
      count(amounts.blobs, 'blob'),
    ];
    session.logger.log('info', `inventory ${id}: ${counts.join(', ')}, ${amountOfBytes(amounts.bytes)}`);
    const size = amountOfBytes(Buffer.byteLength(text));
    await writeTo(options.to, text, context, session.logger, (file) => [
      `wrote ${file}, ${size}`,
      `opmate mirror -c CONFIG file://DIR --base ${shellWord(file)}`,
    ]);
    return exitCodes.done;
  },
});
