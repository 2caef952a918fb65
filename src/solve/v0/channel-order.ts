import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { compareBytes } from '../../core/order.js';
import { getOrAdd, groupBy } from '../../core/groups.js';
import type { ResolverEntry } from './resolver-types.js';

/**
 * Sorts entries of one channel: the head first, then along `replaces`; skipped entries and others off that line are left
 * out. Throws OpmateError INVALID in OLM's words without exactly one head. (Source: OLM, resolver.go, sortChannel.)
 */
function sortChannel(entries: readonly ResolverEntry[]): ResolverEntry[] {
  const [first] = entries;
  if (first === undefined) return [];
  const place = `in channel ${quoteGo(first.channel)} of package ${quoteGo(first.package)}`;
  const byName = new Map(entries.map((entry) => [entry.name, entry]));
  const replaced = new Set<ResolverEntry>();
  const replaces = new Map<ResolverEntry, ResolverEntry>();
  const skipped = new Set<string>();
  for (const entry of entries) {
    const target = entry.replaces === '' ? undefined : byName.get(entry.replaces);
    if (target !== undefined) {
      replaced.add(target);
      replaces.set(entry, target);
    }
    for (const skip of entry.skips) {
      const other = byName.get(skip);
      if (other === undefined) continue;
      replaced.add(other);
      skipped.add(skip);
    }
  }
  const heads = entries.filter((entry) => !replaced.has(entry));
  if (heads.length === 0) {
    const problem = `no channel heads (entries not replaced by another entry) found ${place}`;
    throw new OpmateError('INVALID', problem);
  }
  const chains = heads.map((head) => {
    const chain: ResolverEntry[] = [];
    const visited = new Set<ResolverEntry>();
    for (let entry: ResolverEntry | undefined = head; entry !== undefined; entry = replaces.get(entry)) {
      if (visited.has(entry)) {
        const problem = `a cycle exists in the chain of replacement beginning with ${quoteGo(head.name)} ${place}`;
        throw new OpmateError('INVALID', problem);
      }
      visited.add(entry);
      if (!skipped.has(entry.name)) chain.push(entry);
    }
    return chain;
  });
  const [chain, ...others] = chains;
  if (chain !== undefined && others.length === 0) return chain;
  throw new OpmateError(
    'INVALID',
    'a unique replacement chain within a channel is required to determine the relative order between channel ' +
      `entries, but ${chains.length} replacement chains were found ${place}: ${chains.map(nameChain).join(', ')}`,
  );
}

function nameChain(chain: readonly ResolverEntry[]): string {
  const [head, last] = [chain[0], chain.at(-1)];
  if (head === undefined || last === undefined) return '[]';
  return head === last ? head.name : `${head.name}...${last.name}`;
}

/**
 * Sorts entries that may meet a requirement: catalogs keep their order; in a catalog default channels come first, then
 * packages and channels by name. (Source: OLM, resolver.go, sortBundles.)
 */
export function sortByChannels(entries: readonly ResolverEntry[]): ResolverEntry[] {
  const byCatalog = groupBy(entries, ({ catalog }) => `${catalog.namespace}/${catalog.name}`);
  return [...byCatalog.values()].flatMap((ofCatalog) => {
    const channels = new Map<string, ResolverEntry[]>();
    for (const entry of ofCatalog) {
      const key = JSON.stringify([entry.package, entry.channel, entry.isDefaultChannel]);
      getOrAdd(channels, key, () => []).push(entry);
    }
    return [...channels.values()]
      .sort(([a], [b]) => compareChannels(a as ResolverEntry, b as ResolverEntry))
      .flatMap(sortChannel);
  });
}

function compareChannels(a: ResolverEntry, b: ResolverEntry): number {
  return (
    Number(b.isDefaultChannel) - Number(a.isDefaultChannel) ||
    compareBytes(a.package, b.package) ||
    compareBytes(a.channel, b.channel)
  );
}

/** Sorts candidates of a Subscription: the default channel first, then channels by name, each from its head. */
export function sortCandidates(entries: readonly ResolverEntry[]): ResolverEntry[] {
  const sorted = [...entries].sort(
    (a, b) => Number(b.isDefaultChannel) - Number(a.isDefaultChannel) || compareBytes(a.channel, b.channel),
  );
  const candidates: ResolverEntry[] = [];
  let run: ResolverEntry[] = [];
  for (const entry of sorted) {
    if (run.length > 0 && run[0]?.channel !== entry.channel) {
      candidates.push(...sortChannel(run));
      run = [];
    }
    run.push(entry);
  }
  return [...candidates, ...sortChannel(run)];
}
