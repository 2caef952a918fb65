import { SemverError, compareVersions } from '../../core/semver.js';
import {
  type OpenShiftVersion,
  blocksNextOpenShift,
  formatOpenShift,
  parseMaxOpenShift,
} from '../../core/openshift-version.js';
import { OpmateError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { sortCandidates } from '../v0/channel-order.js';
import type { ResolverEntry } from '../v0/resolver-types.js';
import { leadsFrom } from '../v0/variables.js';
import type { InstalledOperator, UpgradePackage } from './upgrade-types.js';

type Start = Pick<InstalledOperator, 'csv' | 'version'>;

/** Reports why a bundle blocks updates from a version of OpenShift; undefined if it does not. */
export function findGate(maxOpenShift: readonly string[], from: OpenShiftVersion): string | undefined {
  try {
    const maximum = parseMaxOpenShift(maxOpenShift);
    if (maximum === undefined || !blocksNextOpenShift(maximum, from)) return undefined;
    return `maximum supported OpenShift version is ${formatOpenShift(maximum)}`;
  } catch (error) {
    if (error instanceof SemverError) return error.message;
    throw error;
  }
}

/** A bundle that can be reached in a channel, with the bundles on the way to it. */
interface Reached {
  entry: ResolverEntry;
  steps: string[];
}

/**
 * Returns the bundles of a channel that OLM reaches from an installed one, in the order of its steps: each step takes the
 * first candidate from the head on.
 */
function followChannel(entries: readonly ResolverEntry[], start: Start): Reached[] {
  let line: ResolverEntry[];
  try {
    line = sortCandidates(entries);
  } catch (error) {
    if (error instanceof OpmateError) return [];
    throw error;
  }
  const reached: Reached[] = [];
  const seen = new Set([start.csv]);
  let current: Pick<ResolverEntry, 'name' | 'version'> = { name: start.csv, version: start.version };
  for (;;) {
    const next = line.find((entry) => leadsFrom(entry, current) && !seen.has(entry.name));
    if (next === undefined) return reached;
    seen.add(next.name);
    reached.push({ entry: next, steps: [...(reached.at(-1)?.steps ?? []), next.name] });
    current = next;
  }
}

/** Returns the channels of a package: the wanted one, the default, then others by their newest version. */
export function orderChannels({ channels, defaultChannel }: UpgradePackage, wanted: string): string[] {
  const newest = (name: string): ResolverEntry | undefined =>
    [...(channels.get(name) ?? [])].sort(compareEntries).at(-1);
  const rank = (name: string): number => (name === wanted ? 0 : name === defaultChannel ? 1 : 2);
  return [...channels.keys()].sort((a, b) => {
    const [x, y] = [newest(a), newest(b)];
    const byVersion = x === undefined || y === undefined ? 0 : compareEntries(y, x);
    return rank(a) - rank(b) || byVersion || compareBytes(a, b);
  });
}

function compareEntries(a: ResolverEntry, b: ResolverEntry): number {
  if (a.version === undefined || b.version === undefined)
    return Number(a.version !== undefined) - Number(b.version !== undefined);
  return compareVersions(a.version, b.version);
}

/** Reports whether a channel has a bundle, or leads on from it. */
export function continuesIn(entries: readonly ResolverEntry[], start: Start): boolean {
  return entries.some(
    (entry) => entry.name === start.csv || leadsFrom(entry, { name: start.csv, version: start.version }),
  );
}

/** Finds the nearest bundle that fits, in the own channel first. */
export function findWay(
  own: UpgradePackage,
  operator: InstalledOperator,
  fits: (reached: Reached) => boolean,
): { channel: string; reached: Reached } | undefined {
  for (const channel of orderChannels(own, operator.channel)) {
    const reached = followChannel(own.channels.get(channel) ?? [], operator).find(fits);
    if (reached !== undefined) return { channel, reached };
  }
  return undefined;
}
