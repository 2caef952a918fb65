import { groupBy } from '../core/groups.js';
import { compareBytes } from '../core/order.js';
import { type Version, type VersionNumber, compareVersions, formatVersion } from '../core/semver.js';
import { quoteGo } from '../document/go-json.js';
import { type ChannelBlob, type ChannelEntry, schemas } from '../model/declarative-config.js';

/**
 * Channels of a semver template, whose names, entries and edges follow from versions alone. (Source:
 * alpha/template/semver of operator-registry.)
 */

/** Channel archetypes, least stable first. */
export const archetypes = ['candidate', 'fast', 'stable'] as const;

export type Archetype = (typeof archetypes)[number];

/** Channels per major version, `stable-v1`, or per minor version, `stable-v1.2`. */
export type ChannelKind = 'major' | 'minor';

/** Requested channels. */
export interface SemverChannelOptions {
  major: boolean;
  minor: boolean;
  /** Preferred kind of the default channel. */
  preference: ChannelKind;
}

/** A bundle in a list of a template. */
export interface SemverMember {
  archetype: Archetype;
  name: string;
  version: Version;
}

/** An entry without edges, and the versions that determine them. */
interface Unlinked {
  archetype: Archetype;
  kind: ChannelKind;
  version: Version;
  entry: ChannelEntry;
}

interface Candidate {
  archetype: Archetype;
  kind: ChannelKind;
  version: Version;
  name: string;
}

/**
 * Returns the channels of a package, sorted by name, with the default channel: of the most stable archetype, then
 * with the highest version, then of the preferred kind. Names and versions must be unique within an archetype
 * (`findVersionConflicts`).
 *
 * Only the highest patch of a minor version has edges: it replaces the highest patch of the previous minor version
 * and skips all other lower versions of its major version. So the head of a minor channel may replace a bundle of
 * another channel.
 */
export function buildSemverChannels(
  packageName: string,
  members: readonly SemverMember[],
  options: SemverChannelOptions,
): { channels: ChannelBlob[]; defaultChannel: string } {
  const channels = new Map<string, ChannelBlob>();
  const unlinked: Unlinked[] = [];
  let best: Candidate | undefined;
  const kinds = (['major', 'minor'] as const).filter((kind) => options[kind]);
  for (const archetype of archetypes) {
    const ascending = members
      .filter((member) => member.archetype === archetype)
      .sort((a, b) => compareVersions(a.version, b.version));
    for (const { name, version } of ascending) {
      for (const kind of kinds) {
        const channelName = getChannelName(archetype, kind, version);
        let channel = channels.get(channelName);
        if (channel === undefined) {
          channel = newChannel(packageName, channelName);
          channels.set(channelName, channel);
          const candidate = { archetype, kind, version, name: channelName };
          if (best === undefined || isBetter(candidate, best, options.preference)) best = candidate;
        }
        const entry: ChannelEntry = { name, replaces: '', skips: [], skipRange: '' };
        channel.entries?.push(entry);
        unlinked.push({ archetype, kind, version, entry });
      }
    }
  }
  linkEntries(unlinked);
  const sorted = [...channels.values()].sort((a, b) => compareBytes(a.name, b.name));
  return { channels: sorted, defaultChannel: best?.name ?? '' };
}

function getChannelName(archetype: Archetype, kind: ChannelKind, { major, minor }: Version): string {
  return kind === 'major' ? `${archetype}-v${major}` : `${archetype}-v${major}.${minor}`;
}

function newChannel(packageName: string, name: string): ChannelBlob {
  return { schema: schemas.channel, name, package: packageName, entries: [], properties: [] };
}

function isBetter(a: Candidate, b: Candidate, preference: ChannelKind): boolean {
  if (a.archetype !== b.archetype) return archetypes.indexOf(a.archetype) > archetypes.indexOf(b.archetype);
  const order = compareVersions(a.version, b.version);
  if (order !== 0) return order > 0;
  return a.kind !== b.kind && a.kind === preference;
}

/** Sets the edges of entries, which are in ascending order within each archetype. */
function linkEntries(unlinked: readonly Unlinked[]): void {
  const partitions = groupBy(unlinked, (item) => `${item.archetype} ${item.kind} ${item.version.major}`);
  for (const partition of partitions.values()) {
    let previous = '';
    for (const [index, { entry, version }] of partition.entries()) {
      const next: VersionNumber | undefined = partition[index + 1]?.version.minor;
      if (next === version.minor) continue;
      const lower = new Set(partition.slice(0, index).map((item) => item.entry.name));
      lower.delete(previous);
      entry.replaces = previous;
      entry.skips = [...lower].sort(compareBytes);
      previous = entry.name;
    }
  }
}

/**
 * Returns errors for versions of an archetype that are equal to an earlier one except for build metadata, in the
 * words of `opm`: such versions have no order.
 */
export function findVersionConflicts<T extends SemverMember>(
  members: readonly T[],
): { member: T; message: string }[] {
  const seen = new Set<string>();
  const conflicts: { member: T; message: string }[] = [];
  for (const member of members) {
    const plain = formatVersion({ ...member.version, build: [] });
    const key = `${member.archetype} ${plain}`;
    if (!seen.has(key)) {
      seen.add(key);
      continue;
    }
    const version = quoteGo(formatVersion(member.version));
    const message = `bundle version ${version} cannot be compared to ${quoteGo(plain)}`;
    conflicts.push({ member, message });
  }
  return conflicts;
}
