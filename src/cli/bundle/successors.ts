import { argument, defineCommand } from '../command/declaration.js';
import { text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { describeMissing, notFound } from '../../core/suggest.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { compareBytes } from '../../core/order.js';
import { SemverError, compareVersions } from '../../core/semver.js';
import { findHead } from '../../graph/channel-graph.js';
import { compareNewestFirst, compareVersionReleases } from '../../graph/bundle-version.js';
import {
  type BundleVersion,
  type PackageBundle,
  type PackageChannel,
  type PackageContent,
  bundleDeprecations,
  parseBundleVersion,
} from '../../graph/resolve-content.js';
import {
  type UpgradeEdge,
  type UpgradeFrom,
  UpgradeGraph,
  bundlesByName,
  longestPath,
  readableVersion,
  shortestPath,
  streamOf,
} from '../../graph/upgrade-graph.js';
import { parseNamedCatalog, readNamedCatalog } from '../../api/named-catalogs.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { count } from '../printable.js';
import { useSession } from '../session.js';
import { formatTable } from '../table.js';
import { tellFindings } from './findings.js';
import {
  channelFlags,
  checkPackageName,
  dataOf,
  namedCatalogForms,
  parseInstalled,
} from './resolve-input.js';

/** One step of an upgrade, as it is shown. */
interface Step {
  name: string;
  version: string;
  image: string;
  channel: string;
  how: string;
  /** `x`, `y` or `z`; empty where the version is not higher. */
  stream: string;
  deprecation?: string;
}

/** One channel: what follows at once, and the way to its head. */
interface ChannelSuccessors {
  channel: string;
  /** Empty where the channel has no only head. */
  head: string;
  successors: Step[];
  /** The most upgrades to the head; absent where nothing leads there. */
  longestPath?: Step[];
  /** The fewest. */
  shortestPath?: Step[];
}

/**
 * `opmate bundle successors`: what may take the place of a bundle by one upgrade, in each channel, and how. Exit code
 * 3 where `--path-to` asks for a version that no upgrades lead to.
 */
export const command = defineCommand({
  summary: 'show the bundles that can replace a bundle, and the upgrade path to the newest',
  arguments: [
    argument('<package>', 'name of the package'),
    argument('<bundle>', 'NAME, or NAME@VERSION if the catalog does not have it'),
  ],
  flags: {
    catalog: text('catalog', namedCatalogForms, { group: 'Input' }),
    ...channelFlags,
    pathTo: text('version', 'show the shortest upgrade path to this version', { group: 'Selection' }),
    output: outputFormat(['text', 'json', 'yaml'], { default: 'text' }),
  },
  examples: [
    ['Show what can replace a bundle', 'opmate bundle successors demo demo.v1.0.0 --catalog ./catalog'],
    [
      'Show the shortest path to a version',
      'opmate bundle successors demo demo.v1.0.0 --catalog ./catalog --path-to 1.2.0',
    ],
  ],
  async run({ context, args: [packageName, bundle], options }) {
    const { output } = options;
    checkPackageName(packageName);
    const asked = parseInstalled(bundle, bundle);
    const target = options.pathTo === undefined ? undefined : readTarget(options.pathTo);
    if (options.catalog === undefined) {
      throw new UsageError('--catalog is missing', { hint: 'name one, e.g. --catalog ./catalog' });
    }
    const catalog = parseNamedCatalog(options.catalog);
    return useSession(context, options, async (session) => {
      const { content } = await readNamedCatalog(catalog, packageName, session);
      const bundles = bundlesByName(content.bundles);
      const from = startOf(asked, content, bundles, packageName, catalog.name);
      const channels = chooseChannels(content, options.channel ?? [], packageName);
      const toSteps = stepsFrom(from, bundles, bundleDeprecations(content));
      const shown = channels.map((channel) => successorsIn(channel, from, bundles, toSteps));
      const path = target && shortestPath(new UpgradeGraph(channels), bundles, from, target.isWanted);
      session.logger.close();
      const version = from.version?.text ?? '';
      const steps = path && toSteps(path);
      const report = {
        bundle: { name: from.name, version },
        channels: shown,
        ...(target !== undefined && { pathTo: target.text, path: steps ?? null }),
      };
      await writeAll(
        context.stdout,
        output === 'text' ? textOf(shown, target?.text, steps) : dataOf(report, output),
        session.signal,
      );
      if (target === undefined || path !== undefined) return exitCodes.done;
      await tellFindings(context, [
        {
          severity: 'error',
          code: 'no-upgrade',
          problem: `no upgrades lead from ${from.name} to ${target.text}`,
        },
      ]);
      return exitCodes.findings;
    });
  },
});

/** A version without a release stands for all of its releases. */
function readTarget(text: string): { text: string; isWanted: (bundle: PackageBundle) => boolean } {
  try {
    const wanted = parseBundleVersion(text);
    return {
      text,
      isWanted: (bundle) => {
        const version = readableVersion(bundle);
        if (version === undefined) return false;
        return wanted.release.length === 0
          ? compareVersions(version.version, wanted.version) === 0
          : compareVersionReleases(version, wanted) === 0;
      },
    };
  } catch (error) {
    if (!(error instanceof SemverError)) throw error;
    throw new UsageError(`--path-to ${text}: ${error.message}`);
  }
}

function startOf(
  asked: { name: string; version: BundleVersion | undefined },
  { isFound }: PackageContent,
  bundles: ReadonlyMap<string, PackageBundle>,
  packageName: string,
  catalog: string,
): UpgradeFrom {
  if (!isFound) {
    throw new OpmateError('NOT_FOUND', describeMissing('package', packageName, `catalog ${catalog}`), {
      hint: 'list the packages of the catalog to see their names',
    });
  }
  const known = bundles.get(asked.name);
  if (asked.version !== undefined || known !== undefined) {
    return { name: asked.name, version: asked.version ?? readableVersion(known) };
  }
  throw new OpmateError(
    'NOT_FOUND',
    describeMissing('bundle', asked.name, `package ${quoteGo(packageName)}`),
    {
      hint: `say which version it has: ${asked.name}@VERSION`,
    },
  );
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

function stepsFrom(
  from: UpgradeFrom,
  bundles: ReadonlyMap<string, PackageBundle>,
  deprecations: ReadonlyMap<string, string>,
): (edges: readonly UpgradeEdge[], isPath?: boolean) => Step[] {
  return (edges, isPath = true) => {
    let before = from.version;
    return edges.map(({ to, channel, kind, range }) => {
      const bundle = bundles.get(to);
      const version = readableVersion(bundle);
      const deprecation = deprecations.get(to);
      const stream = (version && streamOf(before, version)) ?? '';
      if (isPath) before = version;
      return {
        name: to,
        version: version?.text ?? '',
        image: bundle?.image ?? '',
        channel,
        how: range === undefined ? kind : `${kind} ${range}`,
        stream,
        ...(deprecation !== undefined && { deprecation }),
      };
    });
  };
}

function successorsIn(
  channel: PackageChannel,
  from: UpgradeFrom,
  bundles: ReadonlyMap<string, PackageBundle>,
  toSteps: ReturnType<typeof stepsFrom>,
): ChannelSuccessors {
  const graph = new UpgradeGraph([channel]);
  const head = findHead(channel.entries);
  const versionOf = ({ to }: UpgradeEdge): BundleVersion | undefined => readableVersion(bundles.get(to));
  const direct = graph
    .edgesFrom(from)
    .sort((a, b) => compareNewestFirst(versionOf(a), versionOf(b)) || compareBytes(a.to, b.to));
  const longest = head === '' ? undefined : longestPath(graph, bundles, from, head);
  const shortest =
    head === '' ? undefined : shortestPath(graph, bundles, from, (bundle) => bundle.name === head);
  return {
    channel: channel.name,
    head,
    successors: toSteps(direct, false),
    ...(longest !== undefined && { longestPath: toSteps(longest) }),
    ...(shortest !== undefined && { shortestPath: toSteps(shortest) }),
  };
}

function textOf(
  channels: readonly ChannelSuccessors[],
  pathTo: string | undefined,
  path: readonly Step[] | undefined,
): string {
  const rows = channels.flatMap(({ channel, successors }) =>
    successors.map(({ name, version, stream, how, deprecation }) => [
      channel,
      name,
      version === '' ? '-' : version,
      stream === '' ? '-' : stream,
      how,
      deprecation === undefined ? '-' : 'yes',
    ]),
  );
  let text = formatTable(['CHANNEL', 'SUCCESSOR', 'VERSION', 'STREAM', 'HOW', 'DEPRECATED'], rows);
  text += `\n${formatTable(['CHANNEL', 'HEAD', 'LONGEST WAY', 'SHORTEST WAY'], channels.map(wayRow))}`;
  if (pathTo === undefined || path === undefined) return text;
  const steps = path.length === 0 ? 'it has this version already' : namesOf(path);
  return `${text}\nto ${pathTo}: ${steps}\n`;
}

function wayRow({
  channel,
  head,
  longestPath: longest,
  shortestPath: shortest,
}: ChannelSuccessors): string[] {
  const way = (steps: readonly Step[] | undefined): string =>
    steps === undefined ? '-' : steps.length === 0 ? 'it is the head' : namesOf(steps);
  const most =
    longest !== undefined && longest.length > 1
      ? `${count(longest.length, 'upgrade')}: ${way(longest)}`
      : way(longest);
  return [channel, head === '' ? '-' : head, most, way(shortest)];
}

function namesOf(steps: readonly Step[]): string {
  return steps.map(({ name }) => name).join(' -> ');
}
