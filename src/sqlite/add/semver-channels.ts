import { followReplaces } from '../../graph/channel-graph.js';
import {
  type ChainNode,
  type ReplacesChain,
  VersionLine,
  iterateNodes,
  linkChain,
} from '../../graph/version-line.js';
import { OpmateError, getMessage } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { type Version, parseVersion } from '../../core/semver.js';
import { joinMessages } from '../schema/aggregate.js';
import type { BundleRecord } from '../schema/bundle-record.js';
import { writeChain } from '../schema/channel-entries.js';
import type { Database } from '../schema/database.js';
import { type IndexPackage, findHeads, readPackage } from '../schema/package-state.js';
import type { ChannelEntry } from '../../model/declarative-config.js';

/**
 * Adds bundles of one package, whose rows exist, to its channels by version, and writes the entries of all channels
 * of the package. Ignores what bundles replace and skip, and build metadata.
 *
 * A new bundle is placed between the next higher and the next lower version. With `skipPatch`, of each major.minor
 * with a new bundle only the highest version stays in the chain; it skips all others, and everything they skipped.
 * Skipped bundles stay skipped, and the result does not depend on the order of bundles, in one call or in many.
 *
 * The default channel is that of the last bundle with one; otherwise it stays; a package without one gets the first
 * channel by name of its first bundle.
 *
 * Throws OpmateError INVALID, with the package unchanged, for an existing or invalid version, a graph without a
 * single head or not ordered by version at the place of a bundle, and an unknown default channel.
 */
export async function addToSemverChannels(
  database: Database,
  packageName: string,
  records: readonly BundleRecord[],
  options: { skipPatch: boolean },
): Promise<void> {
  const addition = new SemverAddition(database, packageName, records);
  const versions = addition.claimVersions();
  const defaultChannel = addition.addAll(versions, options.skipPatch);
  addition.requireDefault(defaultChannel);
  await database.transaction(() =>
    writeChains(database, packageName, addition.graphs.values(), defaultChannel),
  );
}

/** Bundles to add to the channels of one package, in memory. */
class SemverAddition {
  readonly #database: Database;
  readonly #packageName: string;
  readonly #records: readonly BundleRecord[];
  readonly #state: ReturnType<typeof readPackage>;
  /** Chains of changed channels. */
  readonly graphs: ReturnType<typeof readChains>;
  readonly #lines = new Map<string, VersionLine>();

  constructor(database: Database, packageName: string, records: readonly BundleRecord[]) {
    this.#database = database;
    this.#packageName = packageName;
    this.#records = records;
    this.#state = readPackage(database, packageName);
    const names = new Set(records.map(({ name }) => name));
    this.graphs = readChains(this.#state, names, (channel, what) => {
      const subject = `${database.name}: package "${packageName}", channel "${channel}"`;
      return new OpmateError('INVALID', `${subject}: ${what}`, { file: database.name });
    });
  }

  /** Returns the versions of the bundles. Throws for all that are invalid or in a channel already. */
  claimVersions(): Map<BundleRecord, Version> {
    const problems: string[] = [];
    const versions = new Map<BundleRecord, Version>();
    for (const record of this.#records) {
      const parsed = readVersion(record);
      if (typeof parsed === 'string') {
        problems.push(parsed);
        continue;
      }
      if (record.channels.length === 0) problems.push(`bundle "${record.name}" names no channel`);
      versions.set(record, parsed);
      for (const channel of new Set(record.channels)) {
        const other = this.#getLine(channel).claim(parsed, record.name);
        if (other === undefined) continue;
        problems.push(
          `bundle "${record.name}": Bundle version ${record.version} already added to index: it is bundle "${other}" in channel "${channel}"`,
        );
      }
    }
    if (problems.length === 0) return versions;
    throw this.#fail(
      joinMessages(problems),
      'use a unique semantic version for each bundle of a channel, regardless of build metadata',
    );
  }

  /** Adds all bundles, and returns the default channel. */
  addAll(versions: ReadonlyMap<BundleRecord, Version>, skipPatch: boolean): string {
    let { defaultChannel } = this.#state;
    for (const [record, version] of versions) {
      for (const channel of new Set(record.channels)) this.#getLine(channel).add(record, version, skipPatch);
      if (record.defaultChannel !== '') ({ defaultChannel } = record);
      else if (defaultChannel === '') defaultChannel = sortedByBytes(record.channels)[0] ?? '';
    }
    return defaultChannel;
  }

  /** Throws if a default channel does not exist. */
  requireDefault(defaultChannel: string): void {
    const isMissing = (channel: string): boolean =>
      !this.graphs.has(channel) && !this.#state.heads.has(channel);
    const known = sortedByBytes(this.graphs.keys()).join(', ');
    const hint = `set it in the annotations of the bundle to one of ${known}`;
    const missing = this.#records.filter(
      (record) => record.defaultChannel !== '' && isMissing(record.defaultChannel),
    );
    if (missing.length > 0) {
      const texts = missing.map(
        (record) => `bundle "${record.name}": the default channel (${record.defaultChannel}) does not exist`,
      );
      throw this.#fail(joinMessages(texts), hint);
    }
    if (!isMissing(defaultChannel)) return;
    throw this.#fail(`the default channel (${defaultChannel}) does not exist`, hint);
  }

  #getLine(channel: string): VersionLine {
    return getOrAdd(this.#lines, channel, () => {
      const graph = getOrAdd(this.graphs, channel, () => linkChain(channel, []));
      return lineOfGraph(graph, (what, hint) => this.#fail(what, hint));
    });
  }

  #fail(what: string, hint?: string): OpmateError {
    const problem = `package "${this.#packageName}": ${what}`;
    return new OpmateError('INVALID', problem, { file: this.#database.name, hint });
  }
}

/** Returns the version of a bundle, or the problem as a string. */
function readVersion({ name, version }: BundleRecord): Version | string {
  if (version === '') return `bundle "${name}" has no version, can't insert in semver mode`;
  try {
    return parseVersion(version);
  } catch (error) {
    return `bundle "${name}": Bundle version ${version} is not valid: ${getMessage(error)}`;
  }
}

function lineOfGraph(
  graph: ReplacesChain,
  failPackage: (what: string, hint?: string) => OpmateError,
): VersionLine {
  const fail = (what: string, hint?: string): OpmateError =>
    failPackage(`channel "${graph.name}": ${what}`, hint);
  const parse = (node: ChainNode): Version => {
    try {
      return parseVersion(node.version);
    } catch (error) {
      throw fail(
        `Unable to parse existing bundle version stored in index: bundle "${node.name}" "${node.version}": ${getMessage(error)}`,
        'add to this package in replaces mode',
      );
    }
  };
  return new VersionLine(graph, parse, fail);
}

/**
 * Reads the chains of the channels of a package, without bundles in `absent` and without empty channels. Throws the
 * error of `fail` for a channel without a single head, with a cycle, or with bundles that its head does not lead to.
 */
function readChains(
  { channels, bundles }: IndexPackage,
  absent: ReadonlySet<string>,
  fail: (channel: string, what: string) => OpmateError,
): Map<string, ReplacesChain> {
  const versions = new Map<string, string>();
  for (const [name, { version }] of bundles) if (!absent.has(name)) versions.set(name, version);
  const chains = new Map<string, ReplacesChain>();
  for (const [channel, entries] of channels) {
    if (!entries.some(({ name }) => versions.has(name))) continue;
    chains.set(
      channel,
      readChain(channel, entries, versions, (what) => fail(channel, what)),
    );
  }
  return chains;
}

function readChain(
  channel: string,
  list: readonly ChannelEntry[],
  versions: ReadonlyMap<string, string>,
  fail: (what: string) => OpmateError,
): ReplacesChain {
  const [head, ...others] = findHeads(list, versions);
  if (head === undefined) throw fail('no channel head found: its bundles replace each other in a circle');
  if (others.length > 0)
    throw fail(`multiple candidate channel heads found: ${[head, ...others].join(', ')}`);
  const entries = new Map(list.map((entry) => [entry.name, entry]));
  const { names, isCycle } = followReplaces({ heads: [head], entries });
  const last = names.at(-1) as string;
  // A name at the end that is no bundle of the index is skipped.
  if (!isCycle && !versions.has(last)) names.pop();
  const missing = names.find((name) => !versions.has(name));
  if (missing !== undefined)
    throw fail(`bundle "${missing}" is replaced and replaces another, but is not in the index`);
  if (isCycle) throw fail(`Cycle detected: bundle "${entries.get(last)?.replaces}" replaces itself`);
  const next = new Map(names.map((name, index) => [name, names[index + 1]]));
  const chain = linkChain(
    channel,
    names.map((name) => ({
      name,
      version: versions.get(name) as string,
      skips: leadsTo(entries.get(name) as ChannelEntry).filter((target) => target !== next.get(name)),
    })),
  );
  for (const entry of list) {
    const targets = leadsTo(entry);
    if (targets.length > 0 && !next.has(entry.name))
      throw fail(`bundle "${entry.name}" is not reached from the head "${head}"`);
    for (const target of targets) {
      const version = versions.get(target);
      if (version !== undefined && !next.has(target)) chain.skipped.set(target, version);
    }
  }
  return chain;
}

function leadsTo({ replaces, skips }: ChannelEntry): string[] {
  return replaces === '' ? skips : [replaces, ...skips];
}

/** Writes channels of a package and their entries. Other channels stay. Runs in the caller's transaction. */
function writeChains(
  database: Database,
  packageName: string,
  chains: Iterable<ReplacesChain>,
  defaultChannel: string,
): void {
  const sorted = [...chains].sort((a, b) => compareBytes(a.name, b.name));
  for (const { name, head } of sorted) {
    database.run(
      `INSERT INTO channel (name, package_name, head_operatorbundle_name) VALUES (?, ?, ?)
       ON CONFLICT DO UPDATE SET head_operatorbundle_name = excluded.head_operatorbundle_name`,
      name,
      packageName,
      head?.name ?? null,
    );
  }
  database.run(
    `INSERT INTO package (name, default_channel) VALUES (?, ?)
     ON CONFLICT DO UPDATE SET default_channel = excluded.default_channel`,
    packageName,
    defaultChannel,
  );
  for (const chain of sorted) {
    const links = [...iterateNodes(chain)].map(({ name, skips }) => ({ name, skips: sortedByBytes(skips) }));
    writeChain(database, packageName, chain.name, links, { sharesDepths: true });
  }
}
