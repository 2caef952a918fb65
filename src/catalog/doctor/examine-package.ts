import { deprecationKey, readDeprecations } from '../../model/deprecations.js';
import { takeTurn } from '../../core/concurrency.js';
import { groupBy } from '../../core/groups.js';
import { quoteGo } from '../../document/go-json.js';
import {
  type OpenShiftVersion,
  compareOpenShift,
  formatOpenShift,
  getKubernetesMinor,
  isAboveKubernetes,
  maxOpenShiftProperty,
  openShiftMilestones,
  openShiftVersionsLabel,
} from '../../core/openshift-version.js';
import { isInVersions } from '../../core/openshift-limits.js';
import { compareBytes } from '../../core/order.js';
import { type Version, compareVersions, formatVersion } from '../../core/semver.js';
import { schemas } from '../../model/declarative-config.js';
import type { BlobOrigin, BundleFacts, ChannelFacts } from '../../model/facts.js';
import { getOnlyHead, readGraph } from '../../graph/channel-graph.js';
import { readBundleVersions } from '../../graph/bundle-version.js';
import { type PackageModel } from '../../graph/package-model.js';
import { SkipRanges } from '../../graph/skip-ranges.js';
import { UpgradeGraph } from '../../graph/upgrade-graph.js';
import type { BundleTraits } from './examine-bundle.js';
import { examineChannel } from './examine-channel.js';
import type { CatalogSubject } from '../../model/catalog-diagnostic.js';
import type { FindingList } from './finding-list.js';

/** Properties of a package beyond its graph. */
interface PackageContext {
  records: ReadonlyMap<BundleFacts, BundleTraits>;
  /** The olm.package blob has a description. */
  isDescribed: boolean;
  openshift: OpenShiftVersion | undefined;
}

/** A channel with its only head. */
interface HeadedChannel {
  facts: ChannelFacts;
  head: string;
  version: Version | undefined;
  isDeprecated: boolean;
  name: VersionedName | undefined;
}

/** Examines a package: each channel, all channels together, and their heads. */
export async function examinePackage(
  model: PackageModel,
  context: PackageContext,
  findings: FindingList,
): Promise<void> {
  return new PackageExamination(model, context, findings).run();
}

/** Examines the channels of one package together, and their heads. */
class PackageExamination {
  readonly #model: PackageModel;
  readonly #context: PackageContext;
  readonly #findings: FindingList;
  readonly #about: { package: string; origin: BlobOrigin | undefined };
  readonly #deprecations: Map<string, string>;
  readonly #channels: HeadedChannel[] = [];
  /** Channels whose names end with a version, by the text before it. */
  #groups = new Map<string | undefined, HeadedChannel[]>();

  constructor(model: PackageModel, context: PackageContext, findings: FindingList) {
    this.#model = model;
    this.#context = context;
    this.#findings = findings;
    this.#about = { package: model.facts.name, origin: model.facts.origin };
    this.#deprecations = readDeprecations(model.deprecations);
  }

  async run(): Promise<void> {
    const versions = readBundleVersions(this.#model.bundles.values());
    for (const facts of this.#model.channels.values()) {
      const graph = readGraph(facts.entries);
      await takeTurn();
      await examineChannel(facts, graph, versions, this.#findings);
      const head = getOnlyHead(graph);
      if (head === undefined) continue;
      const isDeprecated = this.#deprecations.has(deprecationKey(schemas.channel, facts.name));
      const name = readVersionedName(facts.name);
      this.#channels.push({ facts, head, version: versions.get(head), isDeprecated, name });
    }
    // The choice among several must not depend on the form of the catalog.
    this.#channels.sort((a, b) => compareBytes(a.facts.name, b.facts.name));
    const named = this.#channels.filter(({ name }) => name !== undefined);
    this.#groups = groupBy(named, ({ name }) => name?.prefix);
    this.#examineDeprecations();
    this.#examineDefault();
    this.#examineNames();
    this.#examineGaps();
    this.#examineHeads();
    this.#examineForms();
  }

  #ofChannel({ facts }: HeadedChannel): CatalogSubject {
    return { package: facts.package, channel: facts.name, origin: facts.origin };
  }

  #examineDeprecations(): void {
    if (this.#deprecations.has(deprecationKey(schemas.package))) return;
    const origin = this.#model.deprecations[0]?.origin;
    const subject = { ...this.#about, origin };
    if (this.#channels.length > 0 && this.#channels.every(({ isDeprecated }) => isDeprecated)) {
      const hint = 'deprecate the package too, or add a supported channel';
      this.#findings.add('all-channels-deprecated', subject, 'all its channels are deprecated', hint);
      return;
    }
    for (const channel of this.#channels) {
      const { facts, head, isDeprecated } = channel;
      if (isDeprecated && facts.name === this.#model.facts.defaultChannel) {
        const hint = 'set defaultChannel to a supported channel';
        const subject = { ...this.#about, channel: facts.name, path: ['defaultChannel'] };
        this.#findings.add('default-channel-deprecated', subject, 'the default channel is deprecated', hint);
      }
      if (!isDeprecated && this.#deprecations.has(deprecationKey(schemas.bundle, head))) {
        const message = `its head ${quoteGo(head)} is deprecated, and the channel is not`;
        const hint = 'add a supported head, or deprecate the channel';
        this.#findings.add(
          'head-deprecated',
          { ...this.#ofChannel(channel), bundle: head, origin },
          message,
          hint,
        );
      }
    }
  }

  #examineDefault(): void {
    const { defaultChannel } = this.#model.facts;
    const own = this.#channels.find(({ facts }) => facts.name === defaultChannel);
    if (own?.version === undefined) return;
    let highest: HeadedChannel = own;
    for (const other of this.#channels) {
      const { version } = other;
      if (version === undefined || other.isDeprecated || version.pre.length > 0) continue;
      if (isEarlyName(other.facts.name) && !isEarlyName(defaultChannel)) continue;
      if (compareVersions(version, highest.version as Version) > 0) highest = other;
    }
    if (highest === own) return;
    const subject = { ...this.#about, channel: defaultChannel, path: ['defaultChannel'] };
    const [low, high] = [own.version, highest.version as Version].map(formatVersion);
    const message = `the default channel ends with ${low}, channel ${quoteGo(highest.facts.name)} with ${high}`;
    const hint = `set defaultChannel to ${quoteGo(highest.facts.name)} if it suits all users`;
    this.#findings.add('default-channel-lower', subject, message, hint);
  }

  /** Reports heads that do not match the version in the channel name, if those of similar channels do. */
  #examineNames(): void {
    for (const group of this.#groups.values()) {
      const isOwn = ({ name, version }: HeadedChannel): boolean =>
        name !== undefined && version !== undefined && isOfName(name, version);
      const wrong = group.filter((channel) => channel.version !== undefined && !isOwn(channel));
      if (wrong.length * 2 >= group.length) continue;
      for (const channel of wrong) {
        const { head, version } = channel;
        const message = `its head ${quoteGo(head)} has version ${formatVersion(version as Version)}, not the version in the name of the channel`;
        const hint = 'move the bundle to the channel of its version, or rename the channel';
        this.#findings.add('channel-version', { ...this.#ofChannel(channel), bundle: head }, message, hint);
      }
    }
  }

  /** Reports missing upgrades from a channel of one minor version to that of the next. */
  #examineGaps(): void {
    const ranges = new SkipRanges();
    for (const group of this.#groups.values()) {
      const minors = group.filter(({ name, isDeprecated }) => name?.minor !== undefined && !isDeprecated);
      minors.sort((a, b) => compareNames(a.name as VersionedName, b.name as VersionedName));
      for (const [index, next] of minors.entries()) {
        const before = minors[index - 1];
        if (before?.version === undefined || next.version === undefined) continue;
        if (before.name?.major !== next.name?.major || compareVersions(before.version, next.version) >= 0)
          continue;
        const { head } = before;
        const isListed = next.facts.entries.some((entry) => entry.name === head);
        const graph = new UpgradeGraph([next.facts], ranges);
        if (isListed || graph.edgesFrom(head, before.version).length > 0) continue;
        const message = `head ${quoteGo(head)} of channel ${quoteGo(before.facts.name)} has no upgrade in this channel`;
        const hint =
          'replace it in an entry, or cover it with a skipRange: clusters that switch to this channel cannot upgrade';
        this.#findings.add('channel-gap', { ...this.#ofChannel(next), path: ['entries'] }, message, hint);
      }
    }
  }

  #examineHeads(): void {
    const seen = new Set<string>();
    for (const { facts, head, isDeprecated } of this.#channels) {
      const bundle = this.#model.bundles.get(head);
      const record = bundle && this.#context.records.get(bundle);
      if (bundle === undefined || record === undefined) continue;
      const subject = { package: bundle.package, bundle: head, origin: bundle.origin };
      if (facts.name === this.#model.facts.defaultChannel) this.#examineShown(record, subject);
      if (isDeprecated || seen.has(head)) continue;
      seen.add(head);
      this.#examineForOpenShift(record, subject);
    }
  }

  /** Examines the head of the default channel, which consoles show for a package. */
  #examineShown(record: BundleTraits, subject: CatalogSubject): void {
    const { csv, displayName, description, installsForAll, servesApis, needs } = record;
    if (csv === 'none') {
      const message = 'has neither olm.csv.metadata nor olm.bundle.object';
      const hint = 'render it again with api.render: consoles cannot show it';
      this.#findings.add('csv-metadata', subject, message, hint);
    } else if (!displayName) {
      const hint = 'set spec.displayName of its ClusterServiceVersion';
      this.#findings.add('display-name', subject, 'has no display name', hint);
    }
    if (!description && !this.#context.isDescribed && csv !== 'none') {
      const hint = 'add a description to the package, or to the ClusterServiceVersion';
      this.#findings.add('description', this.#about, 'has no description', hint);
    }
    const reasons: string[] = [];
    if (installsForAll === false) reasons.push('does not support the install mode AllNamespaces');
    if (servesApis) reasons.push('serves aggregated APIs');
    if (needs.length > 0) reasons.push('depends on other bundles');
    if (reasons.length === 0) return;
    const hint = 'ignore this if the package is for OLM v0 only';
    const message = `OLM v1 cannot install it: it ${reasons.join(', ')}`;
    this.#findings.add('v1-support', subject, message, hint);
  }

  #examineForOpenShift(record: BundleTraits, subject: CatalogSubject): void {
    const { openshift } = this.#context;
    if (openshift === undefined) return;
    const { maxOpenShift, minKube, openShiftVersions } = record;
    const wanted = formatOpenShift(openshift);
    if (maxOpenShift !== undefined && compareOpenShift(maxOpenShift, openshift) < 0) {
      const message = `${maxOpenShiftProperty} ${formatOpenShift(maxOpenShift)} is below OpenShift ${wanted}`;
      const hint = 'publish a bundle for that version, or remove the package from its catalog';
      this.#findings.add('max-openshift', subject, message, hint);
    }
    const minor = getKubernetesMinor(openshift);
    if (minKube !== undefined && minor !== undefined) {
      const message = `minKubeVersion ${formatVersion(minKube)} is above Kubernetes 1.${minor} of OpenShift ${wanted}`;
      const hint = 'remove the bundle from the catalog of that version';
      if (isAboveKubernetes(minKube, minor)) this.#findings.add('min-kube', subject, message, hint);
    }
    if (openShiftVersions !== undefined && isInVersions(openShiftVersions, openshift) === false) {
      const message = `${openShiftVersionsLabel} ${quoteGo(openShiftVersions)} excludes OpenShift ${wanted}`;
      const hint = 'remove the bundle from the catalog of that version';
      this.#findings.add('openshift-versions', subject, message, hint);
    }
  }

  /** Examines the form of ClusterServiceVersions. A bundle without an image can have objects only. */
  #examineForms(): void {
    const { openshift, records } = this.#context;
    const bundles = [...this.#model.bundles.values()].filter(({ image }) => image !== '');
    const of = (form: BundleTraits['csv']): BundleFacts[] =>
      bundles.filter((bundle) => records.get(bundle)?.csv === form);
    const [objects, metadata, both] = [of('objects'), of('metadata'), of('both')];
    const report = (list: readonly BundleFacts[], message: string, hint: string): void => {
      for (const { package: packageName, name, origin } of list)
        this.#findings.add(
          'csv-metadata',
          { package: packageName, bundle: name, origin, path: ['properties'] },
          message,
          hint,
        );
    };
    if (openshift === undefined) {
      if (objects.length === 0 || metadata.length === 0) return;
      const message = `${objects.length} of its bundles have olm.bundle.object, ${metadata.length} olm.csv.metadata`;
      const hint =
        'convert all of them with api.migrateCatalog options.migrateLevel bundle-object-to-csv-metadata';
      this.#findings.add('csv-metadata', this.#about, message, hint, 'notice');
      return;
    }
    const wanted = formatOpenShift(openshift);
    if (compareOpenShift(openshift, openShiftMilestones.csvMetadata) >= 0) {
      const hint = 'convert it with api.migrateCatalog options.migrateLevel bundle-object-to-csv-metadata';
      report(
        [...objects, ...both],
        `has olm.bundle.object: OpenShift ${wanted} requires olm.csv.metadata instead`,
        hint,
      );
    } else {
      const hint = 'render it again without a migration level';
      report(metadata, `has olm.csv.metadata only: OpenShift ${wanted} requires olm.bundle.object`, hint);
    }
  }
}

function compareNames(a: VersionedName, b: VersionedName): number {
  return a.major - b.major || (a.minor ?? -1) - (b.minor ?? -1) || (a.patch ?? -1) - (b.patch ?? -1);
}

/** A channel name that ends with a version: `stable-4.18`, `v1` or `release-2.x`. */
interface VersionedName {
  /** Text before the version. */
  prefix: string;
  major: number;
  minor: number | undefined;
  patch: number | undefined;
}

/** Parses the version at the end of a channel name; undefined if it has none. */
export function readVersionedName(name: string): VersionedName | undefined {
  const [, prefix = '', major, minor, patch] =
    /^(.*?[-_.])??v?(\d{1,6})(?:\.(\d{1,6}|x))?(?:\.(\d{1,6}|x))?$/.exec(name) ?? [];
  if (major === undefined) return undefined;
  return { prefix, major: Number(major), minor: parseNumber(minor), patch: parseNumber(patch) };
}

function parseNumber(text: string | undefined): number | undefined {
  return text === undefined || text === 'x' ? undefined : Number(text);
}

/** Reports whether a version belongs to the version of a name. */
export function isOfName({ major, minor, patch }: VersionedName, version: Version): boolean {
  return (
    Number(version.major) === major &&
    (minor === undefined || Number(version.minor) === minor) &&
    (patch === undefined || Number(version.patch) === patch)
  );
}

/** Reports whether a channel name suggests prereleases. */
function isEarlyName(name: string): boolean {
  return /(^|[^a-z])(alpha|beta|candidate|canary|dev|develop|development|early|edge|ea|experimental|fast|latest|main|master|next|nightly|pre|prerelease|preview|rc|staging|tech-preview|test|testing|unstable)([^a-z]|$)/i.test(
    name,
  );
}
