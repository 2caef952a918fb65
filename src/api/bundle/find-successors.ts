import { deprecationKey } from '../../model/deprecations.js';
import { schemas } from '../../model/declarative-config.js';
import { firstBy } from '../../core/groups.js';
import { describeMissing, notFound } from '../../core/suggest.js';
import { checkVersion } from '../../catalog/selection/filter-criteria.js';
import { OpmateError, readValue } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { compareBytes } from '../../core/order.js';
import { compareVersions } from '../../core/semver.js';
import { findHead } from '../../graph/channel-graph.js';
import {
  type BundleVersion,
  compareNewestFirst,
  compareVersionReleases,
  parseBundleVersion,
} from '../../graph/bundle-version.js';
import { type PackageBundle, type PackageChannel, type PackageContent } from '../../graph/resolve-content.js';
import {
  type UpgradeEdge,
  type UpgradeFrom,
  UpgradeGraph,
  findReadableVersion,
  findStream,
} from '../../graph/upgrade-graph.js';
import { longestPath, shortestPath } from '../../graph/upgrade-paths.js';
import type { Session } from '../../source/session.js';
import { type NamedCatalog, readNamedCatalog } from '../named-catalogs.js';
import { type NamedBundle, readInstalled } from './resolve-bundle.js';

/** Step of an upgrade path. */
export interface UpgradeStep {
  name: string;
  version: string;
  image: string;
  channel: string;
  /** Edge that allows the upgrade: `replaces`, `skips`, or `skipRange RANGE`. */
  how: string;
  /** `x`, `y` or `z`: the part of the version that rises; empty if none does. */
  stream: string;
  deprecation?: string;
}

/** Direct successors of a bundle in a channel, and the paths to its head. */
export interface ChannelSuccessors {
  channel: string;
  /** Empty if the channel does not have exactly one head. */
  head: string;
  successors: UpgradeStep[];
  /** Path with the most upgrades to the head; absent if no path leads there. */
  longestPath?: UpgradeStep[];
  /** Path with the fewest upgrades. */
  shortestPath?: UpgradeStep[];
}

/** Successors of a bundle. */
export interface BundleSuccessors {
  /** The bundle, with its version; empty if it is not semver. */
  bundle: { name: string; version: string };
  channels: ChannelSuccessors[];
  /** With `pathTo`: the shortest upgrade path; undefined if none leads there. */
  path?: UpgradeStep[] | undefined;
}

/** Request for the successors of a bundle. */
export interface FindSuccessorsRequest {
  packageName: string;
  /** Installed bundle; a bundle without a version has that of the catalog. */
  bundle: NamedBundle;
  /** Channels to look at; default all. */
  channels?: readonly string[] | undefined;
  /** Version to find the shortest upgrade path to. */
  pathTo?: string | undefined;
}

/**
 * Finds the bundles that can replace a bundle with one upgrade, per channel, and the upgrade paths to the channel heads.
 * Throws OpmateError NOT_FOUND for an unknown package, channel or bundle, USAGE for an
 * invalid version.
 */
export async function findSuccessors(
  { packageName, bundle, channels: wanted = [], pathTo: target }: FindSuccessorsRequest,
  catalog: NamedCatalog,
  session: Session,
): Promise<BundleSuccessors> {
  const installed = readInstalled(bundle);
  const pathTo =
    target === undefined
      ? undefined
      : readValue('options.pathTo', target, (text) => parseBundleVersion(checkVersion(text)));
  const { content } = await readNamedCatalog(catalog, packageName, session);
  const bundles = firstBy(content.bundles, ({ name }) => name);
  const from = getStart(installed, content, bundles, packageName, catalog.name);
  const channels = chooseChannels(content, wanted, packageName);
  const versionOf = (name: string): BundleVersion | undefined => findReadableVersion(bundles.get(name));
  const toSteps = (edges: readonly UpgradeEdge[], isPath = true): UpgradeStep[] => {
    let before = from.version;
    return edges.map(({ to, channel, kind, range }) => {
      const version = versionOf(to);
      const deprecation = content.deprecations?.get(deprecationKey(schemas.bundle, to));
      const stream = (version && findStream(before, version)) ?? '';
      if (isPath) before = version;
      return {
        name: to,
        version: version?.text ?? '',
        image: bundles.get(to)?.image ?? '',
        channel,
        how: range === undefined ? kind : `${kind} ${range}`,
        stream,
        ...(deprecation !== undefined && { deprecation }),
      };
    });
  };
  const successorsIn = (channel: PackageChannel): ChannelSuccessors => {
    const graph = new UpgradeGraph([channel]);
    const head = findHead(channel.entries);
    const direct = graph
      .edgesFrom(from.name, from.version?.version)
      .sort((a, b) => compareNewestFirst(versionOf(a.to), versionOf(b.to)) || compareBytes(a.to, b.to));
    const longest = head === '' ? undefined : longestPath(graph, bundles, from, head);
    const shortest =
      head === '' ? undefined : shortestPath(graph, bundles, from, ({ name }) => name === head);
    return {
      channel: channel.name,
      head,
      successors: toSteps(direct, false),
      ...(longest !== undefined && { longestPath: toSteps(longest) }),
      ...(shortest !== undefined && { shortestPath: toSteps(shortest) }),
    };
  };
  const path = pathTo && shortestPath(new UpgradeGraph(channels), bundles, from, isOfVersion(pathTo));
  return {
    bundle: { name: from.name, version: from.version?.text ?? '' },
    channels: channels.map(successorsIn),
    path: path && toSteps(path),
  };
}

/** Reports whether a bundle has a version; a version without a release matches all of its releases. */
function isOfVersion(wanted: BundleVersion): (bundle: PackageBundle) => boolean {
  return (bundle) => {
    const version = findReadableVersion(bundle);
    if (version === undefined) return false;
    return wanted.release.length === 0
      ? compareVersions(version.version, wanted.version) === 0
      : compareVersionReleases(version, wanted) === 0;
  };
}

function getStart(
  installed: ReturnType<typeof readInstalled>,
  { isFound }: PackageContent,
  bundles: ReadonlyMap<string, PackageBundle>,
  packageName: string,
  catalog: string,
): UpgradeFrom {
  if (!isFound) {
    throw new OpmateError('NOT_FOUND', describeMissing('package', packageName, `catalog ${catalog}`), {
      hint: 'run api.listCatalog packages to see the names',
    });
  }
  const known = bundles.get(installed.name);
  if (installed.version !== undefined || known !== undefined) {
    return { name: installed.name, version: installed.version ?? findReadableVersion(known) };
  }
  const problem = describeMissing('bundle', installed.name, `package ${quoteGo(packageName)}`);
  throw new OpmateError('NOT_FOUND', problem, { hint: `add its version: ${installed.name}@VERSION` });
}

function chooseChannels(
  { channels }: PackageContent,
  wanted: readonly string[],
  packageName: string,
): PackageChannel[] {
  const unknown = wanted.find((name) => !channels.some((channel) => channel.name === name));
  if (unknown !== undefined) {
    const names = new Set(channels.map(({ name }) => name));
    throw notFound('channel', unknown, names, { scope: `package ${quoteGo(packageName)}` });
  }
  return channels
    .filter(({ name }) => wanted.length === 0 || wanted.includes(name))
    .sort((a, b) => compareBytes(a.name, b.name));
}
