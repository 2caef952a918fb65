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
  const choice = new HeadChoice(packageName);
  for (const member of [...existing, ...added]) choice.add(member);
  return choice.finish();
}

/** Highest versions of a package and its channels, and what is wrong with them. */
class HeadChoice {
  readonly #packageName: string;
  readonly #errors: OpmateError[] = [];
  readonly #highest: Highest = { members: [] };
  readonly #channels = new Map<string, Highest>();
  /** Lower versions do not choose the default channel. */
  #top = parseVersion('0.0.0');
  #defaultChannel = '';

  constructor(packageName: string) {
    this.#packageName = packageName;
  }

  add(member: ChannelMember): void {
    const { name, version: text } = member;
    try {
      const version = headVersion(text);
      meet(this.#highest, member, version);
      for (const channel of new Set(member.channels)) {
        const head = getOrAdd(this.#channels, channel, () => ({ members: [] }));
        meet(head, member, version);
      }
      if (compareWithBuild(version, this.#top) < 0) return;
      this.#top = version;
      if (member.defaultChannel !== '') this.#defaultChannel = member.defaultChannel;
    } catch (error) {
      if (!(error instanceof SemverError)) throw error;
      const problem = `error parsing bundle ${name} version ${text}: ${error.message}`;
      this.#fail(problem, `set spec.version of ${name} to a semantic version`);
    }
  }

  finish(): PackageChannels {
    // Without all versions, the result is meaningless.
    if (this.#errors.length > 0) throw aggregateErrors(this.#errors);
    const [first] = this.#highest.members;
    this.#requireOne(`bundle with maximum version ${first?.version}`, this.#highest);
    for (const [channel, head] of this.#channels) {
      this.#requireOne(`potential channel head for ${channel}`, head);
    }
    const names = sortedByBytes(this.#channels.keys());
    this.#chooseDefault(names);
    if (this.#errors.length > 0) throw aggregateErrors(this.#errors);
    const channels = names.map((name) => ({
      name,
      head: this.#channels.get(name)?.members[0]?.name as string,
    }));
    return { packageName: this.#packageName, channels, defaultChannel: this.#defaultChannel };
  }

  #requireOne(what: string, { members }: Highest): void {
    if (members.length <= 1) return;
    const shared = sortedByBytes(new Set(members.map(({ name }) => name)));
    this.#fail(
      `more than one ${what}: ${shared.join(', ')} of package ${this.#packageName}`,
      shared.length === 1
        ? 'a lower version in the index skips this bundle already'
        : 'use a unique version for each bundle',
    );
  }

  #chooseDefault(names: readonly string[]): void {
    const [only] = names;
    const named = this.#defaultChannel;
    if (names.length === 1 && only !== undefined && (named === '' || named === only)) {
      this.#defaultChannel = only;
    } else if (!this.#channels.has(named)) {
      const reason = named === '' ? 'no bundle names one' : `${named} is not one of its channels`;
      this.#fail(
        `unable to determine default channel among channel heads of package ${this.#packageName}: ${reason}`,
        `set the default channel in the annotations of its newest bundle to one of ${names.join(', ')}`,
      );
    }
  }

  #fail(message: string, hint: string): void {
    this.#errors.push(new OpmateError('INVALID', message, { hint }));
  }
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
