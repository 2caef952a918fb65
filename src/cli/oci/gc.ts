import { withOpen } from '../../core/concurrency.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, parsed } from '../command/flags.js';
import { duration } from '../command/values.js';
import { collectGarbage, defaultGarbageAgeMs } from '../../api/images/collect-garbage.js';
import { reportEnding } from '../ending.js';
import { createLogger } from '../logger.js';
import { writeAll } from '../output.js';
import { amountOfBytes, count } from '../printable.js';

/** `opmate oci gc`; prints the digest of each removed blob. */
export const command = defineCommand({
  summary: 'remove unreferenced blobs of a layout directory; safe while oci serve serves it',
  arguments: [argument('<directory>', 'layout directory')],
  flags: {
    dryRun: flag('print what would be removed without removing it'),
    olderThan: parsed(
      'duration',
      'minimum age of removed blobs, which may belong to a running push',
      duration('0s', '100000h'),
      { default: defaultGarbageAgeMs, defaultText: '1h' },
    ),
  },
  examples: {
    'List the blobs that would be removed': 'opmate oci gc ./layout --dry-run',
    'Remove unreferenced blobs older than a day': 'opmate oci gc ./layout --older-than 24h',
  },
  async run({ context, args: [directory], options }) {
    const { dryRun, olderThan: minAgeMs } = options;
    return withOpen(createLogger(context, options), async (logger) => {
      let [blobs, bytes] = [0, 0];
      const { signal } = context;
      for await (const { digest, size } of collectGarbage(directory, { minAgeMs, dryRun, signal })) {
        blobs++;
        bytes += size;
        await writeAll(context.stdout, `${digest}\n`, context.signal);
      }
      const verb = dryRun ? 'would remove' : 'removed';
      reportEnding(logger, [`${verb} ${count(blobs, 'unreferenced blob')}, ${amountOfBytes(bytes)}`]);
      return 0;
    });
  },
});
