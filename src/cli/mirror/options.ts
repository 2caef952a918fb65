import path from 'node:path';
import { invalidValue, redactUrls } from '../../core/errors.js';
import type { NamedTransfer, TransferReport } from '../../mirror/transfer/transfer-types.js';
import type { JsonObject } from '../../document/json.js';
import type { CommandContext } from '../context.js';
import type { CopyFlagValues } from './flags.js';
import { replaceFile } from '../../files/replace-file.js';
import { reportEnding } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import type { ClosableLogger } from '../logger.js';
import { encodeData } from '../reports/encode-data.js';
import { writeAll } from '../output.js';
import { amountOfBytes, count } from '../printable.js';

/** Returns the options with the flags of `oc` as global options. */
export function parseGlobalOptions<T extends CopyFlagValues>(options: T): T {
  const authfile = options.registryConfig ?? options.authfile;
  const caFile = options.insecure === true ? undefined : (options.certificateAuthority ?? options.caFile);
  return {
    ...options,
    ...(authfile !== undefined && { authfile }),
    ...(caFile !== undefined && { caFile }),
  };
}

/** Warns of flags that have no effect. */
export function warnOfUnusedFlags(options: CopyFlagValues, logger: ClosableLogger): void {
  if (options.skipVerification === true)
    logger.log('warn', '--skip-verification: digests are still verified');
}

/** Throws UsageError for `--filter-by-os` of some platforms. */
export function requireAllPlatforms({ filterByOs = '.*' }: { filterByOs?: string | undefined }): void {
  if (filterByOs === '.*') return;
  throw invalidValue('--filter-by-os', filterByOs, 'an image is copied with all its platforms', {
    hint: 'remove the flag, or copy the image of one platform with opmate oci copy --platform',
  });
}

/** Writes text to the file of `--to`, and logs a summary and the command that usually follows; default to stdout. */
export async function writeTo(
  file: string | undefined,
  text: string,
  { stdout, workingDirectory, signal }: CommandContext,
  logger: ClosableLogger,
  describe: (file: string) => [summary: string, next: string],
): Promise<void> {
  if (file === undefined) return writeAll(stdout, text, signal);
  await replaceFile(path.resolve(workingDirectory, file), text);
  const [summary, next] = describe(file);
  reportEnding(logger, [summary], next);
}

/**
 * Prints the report in the selected format and logs the total unless `isReported`, with the command that usually follows:
 * `next`, or `retry` if images were lost. Returns the exit code.
 */
export async function finishTransfer(
  context: CommandContext,
  logger: ClosableLogger,
  report: TransferReport,
  options: {
    output: CopyFlagValues['output'];
    dryRun: boolean;
    faults?: number;
    skipMissing?: boolean;
    isReported?: boolean;
    /** Names of the bundles that were removed from catalogs. */
    removedBundles?: readonly string[] | undefined;
    next?: string | undefined;
    /** Command that tries the images again that were lost. */
    retry?: string | undefined;
    /** Further fields of the JSON report. */
    results?: JsonObject | undefined;
  },
): Promise<number> {
  const { done, missing, failed, blobs, bytes } = report;
  const { dryRun, faults = 0 } = options;
  const lost = (options.skipMissing ? 0 : missing.length) + failed.length + faults;
  const what = dryRun ? 'found' : 'mirrored';
  if (options.isReported !== true) {
    const copied = dryRun ? '' : `: copied ${count(blobs, 'blob')}, ${amountOfBytes(bytes)}`;
    logger.log('info', `${what} ${count(done.length, 'image')}${copied}`);
  }
  if (lost > 0) {
    const { removedBundles = [] } = options;
    const reasons = describeLosses({ 'not found': missing.length, failed: failed.length, invalid: faults });
    const removed =
      removedBundles.length === 0
        ? ''
        : `, ${count(removedBundles.length, 'bundle')} removed: ${removedBundles.join(', ')}`;
    logger.log('error', `${count(lost, 'image')} not ${what}${reasons}${removed}`);
  }
  const next = lost > 0 ? options.retry : options.next;
  if (next !== undefined) logger.log('info', `next: ${next}`);
  logger.close();
  if (options.output === undefined) return lost > 0 ? exitCodes.partly : exitCodes.done;
  const lines = done.map(({ transfer, digest }) => `${digest} ${transfer.targetName}\n`);
  await writeAll(context.stdout, options.output === 'json' ? encodeReport(report, options.results) : lines);
  return lost > 0 ? exitCodes.partly : exitCodes.done;
}

function getNames({ sourceName, targetName }: NamedTransfer) {
  // A reference that does not parse has no target.
  return { source: redactUrls(sourceName), ...(targetName !== '' && { target: redactUrls(targetName) }) };
}

/** Returns failed images with their errors, as reports show them. */
export function describeFailures({
  failed,
}: Pick<TransferReport, 'failed'>): { source: string; target?: string; error: string }[] {
  return failed.map(({ transfer, error }) => ({ ...getNames(transfer), error: redactUrls(error.message) }));
}

/** Returns the numbers of images by reason, unless all just failed. */
function describeLosses(numbers: Readonly<Record<string, number>>): string {
  const reasons = Object.entries(numbers).filter(([, number]) => number > 0);
  if (reasons.length === 1) return reasons[0]?.[0] === 'failed' ? '' : `: ${reasons[0]?.[0]}`;
  return `: ${reasons.map(([reason, number]) => `${number} ${reason}`).join(', ')}`;
}

/** Encodes a report as JSON, with further fields. */
export function encodeReport(
  { done, missing, failed, blobs, bytes }: TransferReport,
  results: JsonObject | undefined,
): string {
  const shown = {
    images: done.map(({ transfer, digest }) => ({ ...getNames(transfer), digest })),
    missing: missing.map(getNames),
    failed: describeFailures({ failed }),
    blobs,
    bytes,
    ...results,
  };
  return encodeData(shown, 'json');
}
