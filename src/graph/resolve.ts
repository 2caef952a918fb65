import { deprecationKey } from '../model/deprecations.js';
import { quoteGo } from '../core/go-json-quote.js';
import { getOrAdd, pushTo } from '../core/groups.js';
import { compareBytes, sortedByBytes } from '../core/order.js';
import { parseConstraint } from '../core/semver-range.js';
import { type VersionRange } from '../core/semver.js';
import { compareVersions } from '../core/semver.js';
import { type BundleVersion, compareNewestFirst, compareVersionReleases } from './bundle-version.js';
import { type PackageBundle, type PackageContent } from './resolve-content.js';
import {
  type Stream,
  type UpgradeEdge,
  UpgradeGraph,
  describeEdge,
  findReadableVersion,
  findStream,
} from './upgrade-graph.js';
import { schemas } from '../model/declarative-config.js';

/** Resolution request, as in a ClusterExtension. */
export interface ResolveRequest {
  packageName: string;
  /** Version range, see `parseConstraint`; empty for any version. */
  versionRange: string;
  /** Allowed channels; empty for all. */
  channels: readonly string[];
  /** Installed bundle. */
  installed?: { name: string; version: BundleVersion } | undefined;
  /** Restrict the result to upgrades defined by the catalog. */
  policy: 'catalog-provided' | 'self-certified';
}

export interface ResolveCatalog {
  name: string;
  priority: number;
  content: PackageContent;
}

/** A bundle of the package with its verdict. */
interface Candidate {
  name: string;
  version: string;
  /** Release, which orders bundles of one version. */
  release?: string;
  image: string;
  /** Allowed channels that contain the bundle, sorted. */
  channels: string[];
  /** Deprecation message. */
  deprecation?: string;
  /** Upgrade from the installed bundle. */
  upgrade?: string;
  /** The bundle passes all filters. */
  isMatch: boolean;
  /** Reason why the bundle was not chosen; empty for the chosen one. */
  reasons: string[];
}

/** Verdict on a catalog. */
interface CatalogTrace {
  name: string;
  priority: number;
  isPackageFound: boolean;
  total: number;
  matched: number;
  verdict: string;
  /** Candidates, best first: matches, then by deprecation, version and name. */
  candidates: Candidate[];
}

/** A deprecation that affects the result. */
interface DeprecationNotice {
  kind: 'package' | 'channel' | 'bundle' | 'installed';
  name: string;
  message: string;
}

/** Best upgrade of the installed bundle within a stream, whatever the requested version. */
interface StreamSuccessor {
  stream: Stream;
  name: string;
  version: string;
  catalog: string;
  channels: string[];
}

/**
 * `none`: no match; `ambiguous`: matches in catalogs of equal priority; `unsupported`: OLM v1 cannot install the
 * chosen bundle.
 */
export interface Resolution {
  outcome: 'resolved' | 'none' | 'ambiguous' | 'unsupported';
  /** Reason, on one line. */
  reason: string;
  /** Chosen bundle, even if unsupported. */
  chosen?: Candidate & { catalog: string };
  /** Catalogs by name. */
  catalogs: CatalogTrace[];
  deprecations: DeprecationNotice[];
  /** Error message if no bundle was chosen. */
  successors: StreamSuccessor[];
}

/**
 * Chooses the bundle that OLM v1 would install: the best match of each catalog (not deprecated first, then the
 * highest version and release, then the first name), of these those not deprecated, if any, of these the one of the
 * catalog with the highest priority. The order of catalogs and blobs does not matter. Throws SemverError for an
 * invalid range. (Source: operator-controller, resolve/catalog.go.)
 */
export function resolvePackage(request: ResolveRequest, unsorted: readonly ResolveCatalog[]): Resolution {
  const { versionRange } = request;
  const range = versionRange === '' ? undefined : parseConstraint(versionRange);
  const judged = [...unsorted]
    .sort((a, b) => compareBytes(a.name, b.name))
    .map((catalog) => judgeCatalog(request, range, catalog));
  const withMatch = judged.filter(({ best }) => best !== undefined);
  const isFresh = ({ best }: Judged): boolean => best?.candidate.deprecation === undefined;
  const fresh = withMatch.filter(isFresh);
  const eligible = fresh.length > 0 ? fresh : withMatch;
  const highest = Math.max(...eligible.map(({ trace }) => trace.priority));
  const finalists = eligible.filter(({ trace }) => trace.priority === highest);
  for (const { trace, best } of withMatch) {
    if (finalists.some((finalist) => finalist.trace === trace)) continue;
    trace.verdict = eligible.some((other) => other.trace === trace)
      ? `lower priority than that of ${getNames(finalists)}`
      : `its best match is deprecated, unlike that of ${getNames(fresh)}`;
    best?.candidate.reasons.push(trace.verdict);
  }
  const catalogs = judged.map(({ trace }) => trace);
  const [winner, ...ties] = finalists;
  if (winner?.best === undefined || ties.length > 0) {
    for (const { trace, best } of finalists) {
      trace.verdict = `as good as ${getNames(finalists.filter((other) => other.trace !== trace))}`;
      best?.candidate.reasons.push(trace.verdict);
    }
    return {
      outcome: ties.length > 0 ? 'ambiguous' : 'none',
      reason: describeFailure(request, finalists),
      catalogs,
      deprecations: [],
      successors: ties.length > 0 ? [] : streamSuccessors(request, unsorted),
    };
  }
  const { trace, best, content } = winner;
  trace.verdict = 'chosen';
  const fault = unsupportedFault(best.bundle);
  return {
    outcome: fault === undefined ? 'resolved' : 'unsupported',
    reason: fault ?? whyChosen(winner, eligible.length, withMatch.length),
    chosen: { ...best.candidate, catalog: trace.name },
    catalogs,
    deprecations: getNotices(request, content, best.candidate),
    successors: [],
  };
}

interface Judged {
  trace: CatalogTrace;
  content: PackageContent;
  best: JudgedBundle | undefined;
}

interface JudgedBundle {
  bundle: PackageBundle;
  candidate: Candidate;
}

function judgeCatalog(
  request: ResolveRequest,
  range: VersionRange | undefined,
  { name, priority, content }: ResolveCatalog,
): Judged {
  const judge = new BundleJudge(request, range, content);
  const judged = content.bundles.map((bundle) => judge.judge(bundle)).sort(byPreference);
  const matches = judged.filter(({ candidate }) => candidate.isMatch);
  const [best, ...others] = matches;
  for (const other of others) if (best !== undefined) other.candidate.reasons.push(whyWorse(other, best));
  return {
    best,
    content,
    trace: {
      name,
      priority,
      isPackageFound: content.isFound,
      total: content.bundles.length,
      matched: matches.length,
      verdict: content.isFound ? 'no bundle matches' : 'package not found',
      candidates: judged.map(({ candidate }) => candidate),
    },
  };
}

/** Judges the bundles of one catalog by a request. */
class BundleJudge {
  readonly #request: ResolveRequest;
  readonly #range: VersionRange | undefined;
  readonly #content: PackageContent;
  readonly #channelsByBundle = new Map<string, Set<string>>();
  /** Upgrades from the installed bundle, by their target. */
  readonly #upgrades = new Map<string, UpgradeEdge>();

  constructor(request: ResolveRequest, range: VersionRange | undefined, content: PackageContent) {
    this.#request = request;
    this.#range = range;
    this.#content = content;
    const { channels: wanted, installed } = request;
    const channels = content.channels.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
    for (const channel of channels) {
      for (const entry of channel.entries) {
        getOrAdd(this.#channelsByBundle, entry.name, () => new Set<string>()).add(channel.name);
      }
    }
    if (installed === undefined) return;
    for (const edge of new UpgradeGraph(channels).edgesFrom(installed.name, installed.version.version)) {
      const known = this.#upgrades.get(edge.to);
      if (known === undefined || compareBytes(edge.channel, known.channel) < 0) {
        this.#upgrades.set(edge.to, edge);
      }
    }
  }

  judge(bundle: PackageBundle): JudgedBundle {
    const version = findReadableVersion(bundle);
    const upgrade = this.#upgrades.get(bundle.name);
    const isInstalled = this.#isInstalled(version);
    const reasons = this.#findReasons(bundle, version, isInstalled);
    const deprecation = this.#content.deprecations?.get(deprecationKey(schemas.bundle, bundle.name));
    const how =
      upgrade !== undefined ? describeEdge(upgrade) : isInstalled ? 'version already installed' : undefined;
    return {
      bundle,
      candidate: {
        name: bundle.name,
        version: version?.text ?? '',
        ...(version !== undefined && version.release.length > 0 && { release: version.release.join('.') }),
        image: bundle.image,
        channels: sortedByBytes(this.#channelsByBundle.get(bundle.name) ?? []),
        ...(deprecation !== undefined && { deprecation }),
        ...(how !== undefined && { upgrade: how }),
        isMatch: reasons.length === 0,
        reasons,
      },
    };
  }

  #isInstalled(version: BundleVersion | undefined): boolean {
    const { installed } = this.#request;
    return (
      installed !== undefined &&
      version !== undefined &&
      compareVersionReleases(version, installed.version) === 0
    );
  }

  /** Returns why a bundle does not match. */
  #findReasons(bundle: PackageBundle, version: BundleVersion | undefined, isInstalled: boolean): string[] {
    const { channels: wanted, installed, policy, versionRange } = this.#request;
    const range = this.#range;
    const reasons: string[] = [];
    if (wanted.length > 0 && !this.#channelsByBundle.has(bundle.name)) {
      reasons.push(`not in ${wanted.length === 1 ? 'channel' : 'any of the channels'} ${wanted.join(', ')}`);
    }
    if (range !== undefined && (version === undefined || !range.contains(version.version))) {
      reasons.push(outOfRange(bundle, version, versionRange));
    }
    const isBound = installed !== undefined && policy === 'catalog-provided';
    if (isBound && !this.#upgrades.has(bundle.name) && !isInstalled) {
      reasons.push(`no upgrade of ${installed.name}`);
    }
    return reasons;
  }
}

function outOfRange(bundle: PackageBundle, version: BundleVersion | undefined, range: string): string {
  if (version === undefined) return `invalid version: ${String(bundle.version)}`;
  const asks = version.version.pre.length > 0 && !range.includes('-') ? ', which excludes prereleases' : '';
  return `version ${version.text} is not in ${quoteGo(range)}${asks}`;
}

/** Compares matches first, then in the order of OLM v1, and finally by name and image. */
function byPreference(a: JudgedBundle, b: JudgedBundle): number {
  const rank = ({ candidate }: JudgedBundle): number =>
    (candidate.isMatch ? 0 : 2) + (candidate.deprecation === undefined ? 0 : 1);
  return (
    rank(a) - rank(b) ||
    compareNewestFirst(findReadableVersion(a.bundle), findReadableVersion(b.bundle)) ||
    compareBytes(a.bundle.name, b.bundle.name) ||
    compareBytes(a.bundle.image, b.bundle.image)
  );
}

function whyWorse(other: JudgedBundle, best: JudgedBundle): string {
  if (other.candidate.deprecation !== undefined && best.candidate.deprecation === undefined) {
    return 'deprecated';
  }
  const [highest, version] = [findReadableVersion(best.bundle), findReadableVersion(other.bundle)];
  if (compareNewestFirst(highest, version) === 0) return `same version as ${best.bundle.name}`;
  const isSame =
    highest !== undefined && version !== undefined && compareVersions(highest.version, version.version) === 0;
  return `lower ${isSame ? 'release' : 'version'} than ${best.bundle.name}`;
}

function whyChosen({ trace, best }: Judged, eligible: number, withMatch: number): string {
  const { matched, priority } = trace;
  const { deprecation, upgrade } = best?.candidate ?? {};
  return [
    matched === 1 ? 'the only matching bundle' : `the best of ${matched} matching bundles`,
    ...(deprecation === undefined ? [] : ['deprecated, as are all matching bundles']),
    ...(upgrade === undefined ? [] : [`it ${upgrade}`]),
    ...(eligible > 1 ? [`its catalog has the highest priority, ${priority}`] : []),
    ...(eligible < withMatch ? ['matches in other catalogs are deprecated'] : []),
  ].join('; ');
}

function getNames(judged: readonly Judged[]): string {
  return judged.map(({ trace }) => trace.name).join(', ');
}

/** Returns the error in the words of operator-controller. */
function describeFailure(request: ResolveRequest, tied: readonly Judged[]): string {
  const { packageName, versionRange, channels, installed } = request;
  const parts = [
    ...(installed === undefined
      ? []
      : [`error upgrading from currently installed version ${quoteGo(installed.version.text)}:`]),
    `${tied.length > 1 ? 'found' : 'no'} bundles${tied.length > 1 ? '' : ' found'} for package ${quoteGo(packageName)}`,
    ...(versionRange === '' ? [] : [`matching version ${quoteGo(versionRange)}`]),
    ...(channels.length === 0 ? [] : [`in channels [${channels.join(' ')}]`]),
    ...(tied.length > 1
      ? [`in multiple catalogs with the same priority [${tied.map(({ trace }) => trace.name).join(' ')}]`]
      : []),
  ];
  return parts.join(' ');
}

/** Returns why OLM v1 would not install the chosen bundle; it does not try another one. */
function unsupportedFault({ name, version, dependencies }: PackageBundle): string | undefined {
  const bundle = `bundle ${quoteGo(name)}`;
  if (typeof version === 'string') return `error getting resolved bundle version for ${bundle}: ${version}`;
  if (dependencies.length === 0) return undefined;
  const types = dependencies.map(quoteGo).join(', ');
  return (
    `validating ${bundle}: ${bundle} has a dependency declared via property ${types} ` +
    'which is currently not supported'
  );
}

function getNotices(
  { packageName, channels, installed }: ResolveRequest,
  content: PackageContent,
  chosen: Candidate,
): DeprecationNotice[] {
  const subjects: [DeprecationNotice['kind'], string, string][] = [
    ['package', schemas.package, packageName],
    ...sortedByBytes(new Set(channels)).map((name): [DeprecationNotice['kind'], string, string] => [
      'channel',
      schemas.channel,
      name,
    ]),
    ['bundle', schemas.bundle, chosen.name],
  ];
  if (installed !== undefined && installed.name !== chosen.name) {
    subjects.push(['installed', schemas.bundle, installed.name]);
  }
  return subjects.flatMap(([kind, schema, name]) => {
    const message = content.deprecations?.get(deprecationKey(schema, name));
    return message === undefined ? [] : [{ kind, name, message }];
  });
}

/** Returns the best upgrades of the installed bundle in any channel. */
function streamSuccessors(
  { installed }: ResolveRequest,
  catalogs: readonly ResolveCatalog[],
): StreamSuccessor[] {
  if (installed === undefined) return [];
  const providers = catalogs.flatMap(({ name: catalog, content }) => {
    const channelsByBundle = new Map<string, string[]>();
    for (const { to, channel } of new UpgradeGraph(content.channels).edgesFrom(
      installed.name,
      installed.version.version,
    )) {
      pushTo(channelsByBundle, to, channel);
    }
    return content.bundles.flatMap((bundle) => {
      const version = findReadableVersion(bundle);
      const stream = version && findStream(installed.version, version);
      const channels = channelsByBundle.get(bundle.name);
      if (version === undefined || stream === undefined || channels === undefined) return [];
      const isDeprecated = content.deprecations?.has(deprecationKey(schemas.bundle, bundle.name)) === true;
      return [{ stream, bundle, version, catalog, channels: sortedByBytes(new Set(channels)), isDeprecated }];
    });
  });
  providers.sort(
    (a, b) =>
      Number(a.isDeprecated) - Number(b.isDeprecated) ||
      compareVersionReleases(b.version, a.version) ||
      compareBytes(a.catalog, b.catalog) ||
      compareBytes(a.bundle.name, b.bundle.name),
  );
  return (['z', 'y', 'x'] as const).flatMap((stream) => {
    const best = providers.find((item) => item.stream === stream);
    if (best === undefined) return [];
    const { bundle, version, catalog, channels } = best;
    return [{ stream, name: bundle.name, version: version.text, catalog, channels }];
  });
}
