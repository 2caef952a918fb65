import { OpmateError } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import type { BundleRecord } from '../schema/bundle-record.js';
import { findWaysTo } from '../../graph/ways.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import { type IndexPackage, findHeads } from '../schema/package-state.js';

/**
 * Returns those of `records` that are unreachable from the heads of their channels in the written package. Throws
 * OpmateError INVALID for a channel without a single head.
 */
export function findPruned(
  packageName: string,
  state: IndexPackage,
  records: readonly BundleRecord[],
): { record: BundleRecord; error: OpmateError }[] {
  const channels = new Map<string, { head: string; skips: string[]; reached: ReadonlySet<string> }>();
  for (const [channel, list] of state.channels) {
    const head = findHead(packageName, channel, list, state);
    if (head === undefined) continue;
    const entries = new Map(list.map((entry) => [entry.name, entry]));
    const { replaces = '', skips = [] } = entries.get(head) ?? {};
    channels.set(channel, {
      head,
      skips: sortedByBytes(new Set([replaces, ...skips].filter((name) => name !== ''))),
      reached: findWaysTo([head], entries, { isKnown: () => true }).reached,
    });
  }
  const pruned: ReturnType<typeof findPruned> = [];
  for (const record of records) {
    for (const channel of record.channels) {
      const { head = '', skips = [], reached } = channels.get(channel) ?? {};
      if (reached?.has(record.name) === true) continue;
      const { name, image } = record;
      const message =
        `add prunes bundle ${name} (${image}) from package ${packageName}, channel ${channel}: this may be ` +
        `due to incorrect channel head (${head}, skips/replaces [${skips.join(' ')}]). ` +
        `Be aware that the head of the channel ${channel} where you are trying to add the ${name} is ${head}. ` +
        'Upgrade graphs follows the Semantic Versioning 2.0.0 (https://semver.org/) which means that ' +
        'is not possible add new versions lower then the head of the channel';
      const hint = `replace or skip ${name} in a bundle of the channel, or set a version above that of the head`;
      pruned.push({ record, error: new OpmateError('INVALID', message, { hint }) });
    }
  }
  return pruned;
}

/** Returns the bundle of a channel that no other replaces or skips; undefined for a channel without bundles. */
function findHead(
  packageName: string,
  channel: string,
  entries: readonly ChannelEntry[],
  { bundles }: IndexPackage,
): string | undefined {
  if (!entries.some(({ name }) => bundles.has(name))) return undefined;
  const heads = findHeads(entries, bundles);
  if (heads.length === 1) return heads[0];
  const subject = `unable to verify added bundles for package ${packageName}`;
  if (heads.length === 0) {
    const hint = 'fix replaces and skips of its bundles, which form a cycle';
    throw new OpmateError('INVALID', `no channel head found for ${channel}`, { subject, hint });
  }
  const problem = `${subject}: multiple candidate channel heads found for ${channel}: ${heads.join(', ')}`;
  throw new OpmateError('INVALID', problem);
}
