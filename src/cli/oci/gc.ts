import { collectGarbage } from '../../oci/layout/layout-garbage.js';
import { LayoutStore } from '../../oci/layout/layout-store.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { createLogger } from '../logger.js';
import { writeAll } from '../output.js';

interface OciGcOptions extends GlobalOptions {
  dryRun?: boolean;
  /** Milliseconds. */
  olderThan?: number;
}

const defaultAgeMs = 60 * 60 * 1000;

/** `opmate oci gc`: removes unreferenced blobs of a layout directory, and prints the digest of each. */
export async function ociGc(
  context: CommandContext,
  directory: string,
  options: OciGcOptions,
): Promise<number> {
  const { dryRun: isDryRun = false, olderThan: minAgeMs = defaultAgeMs } = options;
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
}
