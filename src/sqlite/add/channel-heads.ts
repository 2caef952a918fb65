import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { sortedByBytes } from '../../core/order.js';
import { SemverError, type Version, compareVersions, parseVersion } from '../../core/semver.js';
import { compareVersionBuilds } from '../../graph/bundle-version.js';
import type { PackageChannels } from '../schema/package-channels.js';
import { aggregateErrors } from '../schema/aggregate.js';

/** A bundle for choosing heads. */
export interface ChannelMember {
  name: string;
  /** May be empty, which is lower than any valid version. */
  version: string;
  channels: readonly string[];
  defaultChannel: string;
}

/** Version of bundles without one. */
const noVersion = '0.0.0-z';

/** Returns the version of a bundle for choosing heads. Throws SemverError. */
export function headVersion(version: string): Version {
  return parseVersion(version === '' ? noVersion : version);
}

/**
 * Compares as `compareVersionBuilds`. Throws SemverError for build metadata that opm does not compare: a number with
 * a leading zero.
 */
export function compareWithBuild(a: Version, b: Version): number {
  const order = compareVersions(a, b);
  if (order !== 0) return order;
  for (const { build } of [a, b]) if (build.length > 0) parseVersion(`1.0.0-${build.join('.')}`);
  return compareVersionBuilds(a, b);
}

/**
 * Chooses the heads of the channels of a package and its default channel, as the mode `replaces` does: the head of a
 * channel is its highest version, whatever replaces it. `existing` are the bundles of the package, `added` the new
 * ones by ascending version. Throws OpmateError INVALID with all invalid versions, for two bundles with the highest
 * version, and for an unknown default channel.
 */
export function chooseHeads(
  packageName: string,
  existing: readonly ChannelMember[],
  added: readonly ChannelMember[],
): PackageChannels {
  const errors: OpmateError[] = [];
  const fail = (message: string, hint?: string): void => {
    errors.push(new OpmateError('INVALID', message, { hint }));
  };
  const highest: Highest = { members: [] };
  const channels = new Map<string, Highest>();
  // Lower versions do not choose the default channel.
  let top = parseVersion('0.0.0');
  let defaultChannel = '';
  for (const member of [...existing, ...added]) {
    const { name, version: text } = member;
    try {
      const version = headVersion(text);
      meet(highest, member, version);
      for (const channel of new Set(member.channels))
        meet(
          getOrAdd(channels, channel, () => ({ members: [] })),
          member,
          version,
        );
      if (compareWithBuild(version, top) >= 0) {
        top = version;
        if (member.defaultChannel !== '') ({ defaultChannel } = member);
      }
    } catch (error) {
      if (!(error instanceof SemverError)) throw error;
      fail(
        `error parsing bundle ${name} version ${text}: ${error.message}`,
        `set spec.version of ${name} to a semantic version`,
      );
    }
  }
  // Without all versions, the result is meaningless.
  if (errors.length > 0) throw aggregateErrors(errors);
  const requireOne = (what: string, { members }: Highest): void => {
    if (members.length <= 1) return;
    const shared = sortedByBytes(new Set(members.map(({ name }) => name)));
    fail(
      `more than one ${what}: ${shared.join(', ')} of package ${packageName}`,
      shared.length === 1
        ? 'a lower version in the index skips this bundle already'
        : 'use a unique version for each bundle',
    );
  };
  requireOne(`bundle with maximum version ${highest.members[0]?.version}`, highest);
  for (const [channel, head] of channels) requireOne(`potential channel head for ${channel}`, head);
  const names = sortedByBytes(channels.keys());
  const [only] = names;
  if (names.length === 1 && only !== undefined && (defaultChannel === '' || defaultChannel === only)) {
    defaultChannel = only;
  } else if (!channels.has(defaultChannel)) {
    fail(
      `unable to determine default channel among channel heads of package ${packageName}: ${
        defaultChannel === '' ? 'no bundle names one' : `${defaultChannel} is not one of its channels`
      }`,
      `set the default channel in the annotations of its newest bundle to one of ${names.join(', ')}`,
    );
  }
  if (errors.length > 0) throw aggregateErrors(errors);
  const heads = names.map((name) => ({ name, head: channels.get(name)?.members[0]?.name as string }));
  return { packageName, channels: heads, defaultChannel };
}

/** Bundles that share the highest version so far. */
interface Highest {
  version?: Version;
  members: ChannelMember[];
}

function meet(highest: Highest, member: ChannelMember, version: Version): void {
  const order = highest.version === undefined ? 1 : compareWithBuild(version, highest.version);
  if (order < 0) return;
  highest.members = order > 0 ? [member] : [...highest.members, member];
  highest.version = version;
}
