import { argument, defineCommand } from '../command/declaration.js';
import { flag, parsed } from '../command/flags.js';
import { milliseconds } from '../command/values.js';
import { collectGarbage } from '../../oci/layout/layout-garbage.js';
import { LayoutStore } from '../../oci/layout/layout-store.js';
import { createLogger } from '../logger.js';
import { writeAll } from '../output.js';

const defaultAgeMs = 60 * 60 * 1000;

/** `opmate oci gc`: removes unreferenced blobs of a layout directory, and prints the digest of each. */
export const command = defineCommand({
  summary: 'remove unreferenced blobs of a layout directory; safe while oci serve serves it',
  arguments: [argument('<directory>', 'layout directory')],
  flags: {
    dryRun: flag('print what would be removed without removing it'),
    olderThan: parsed(
      'duration',
      'minimum age of removed blobs, which may belong to a running push (default: 1h)',
      milliseconds,
      { default: defaultAgeMs },
    ),
  },
  examples: [
    ['Print what would be removed', 'opmate oci gc ./layout --dry-run'],
    ['Remove blobs that nothing has referenced for a day', 'opmate oci gc ./layout --older-than 24h'],
  ],
  async run({ context, args: [directory], options }) {
    const { dryRun: isDryRun, olderThan: minAgeMs } = options;
    const logger = createLogger(context, options);
    try {
      const store = await LayoutStore.open(directory);
      let [blobs, bytes] = [0, 0];
      for await (const { digest, size } of collectGarbage(store, {
        minAgeMs,
        isDryRun,
        signal: context.signal,
      })) {
        blobs++;
        bytes += size;
        await writeAll(context.stdout, `${digest}\n`, context.signal);
      }
      const noun = blobs === 1 ? 'blob' : 'blobs';
      const verb = isDryRun ? 'would remove' : 'removed';
      const amount = `${(bytes / 1e6).toFixed(1)} MB`;
      logger.log('info', `${verb} ${blobs} unreferenced ${noun}, ${amount}`, { blobs, bytes });
      return 0;
    } finally {
      logger.close();
    }
  },
});
