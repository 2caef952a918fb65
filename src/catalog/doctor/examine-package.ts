import { takeTurn } from '../../core/concurrency.js';
import { quoteGo } from '../../document/go-json.js';
import { compareBytes } from '../../core/order.js';
import { type Version, compareVersions, formatVersion } from '../../core/semver.js';
import { schemas } from '../../model/declarative-config.js';
import type { BundleFacts, ChannelFacts } from '../../model/facts.js';
import { getOnlyHead, readGraph } from '../../graph/channel-graph.js';
import { readBundleVersions } from '../../graph/bundle-version.js';
import { type PackageModel } from '../../graph/package-model.js';
import { SkipRanges } from '../../graph/skip-ranges.js';
import { UpgradeGraph } from '../../graph/upgrade-graph.js';
import { type VersionedName, isEarlyName, isOfName, readVersionedName } from './channel-names.js';
import type { BundleRecord } from './examine-bundle.js';
import { examineChannel } from './examine-channel.js';
import type { CatalogSubject } from '../../model/catalog-diagnostic.js';
import type { FindingList } from './finding-list.js';
import {
  type OpenShiftVersion,
  compareOpenShift,
  firstWithCsvMetadata,
  formatOpenShift,
  isAboveKubernetes,
  isInVersions,
  getKubernetesMinor,
} from './openshift.js';

/** Properties of a package beyond its graph. */
interface PackageContext {
  records: ReadonlyMap<BundleFacts, BundleRecord>;
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
  await new PackageExamination(model, context, findings).run();
}

class PackageExamination {
  readonly #model: PackageModel;
  readonly #context: PackageContext;
  readonly #findings: FindingList;
  readonly #versions: ReadonlyMap<string, Version>;
  readonly #deprecated = { package: false, channels: new Set<string>(), bundles: new Set<string>() };

  constructor(model: PackageModel, context: PackageContext, findings: FindingList) {
    this.#model = model;
    this.#context = context;
    this.#findings = findings;
    this.#versions = readBundleVersions(model.bundles.values());
    for (const { reference } of model.deprecations.flatMap(({ entries }) => entries)) {
      if (reference.schema === schemas.package) this.#deprecated.package = true;
      else if (reference.schema === schemas.channel) this.#deprecated.channels.add(reference.name);
      else if (reference.schema === schemas.bundle) this.#deprecated.bundles.add(reference.name);
    }
  }

  async run(): Promise<void> {
    const channels: HeadedChannel[] = [];
    for (const facts of this.#model.channels.values()) {
      const graph = readGraph(facts.entries);
      await takeTurn();
      await examineChannel(facts, graph, this.#versions, this.#findings);
      const head = getOnlyHead(graph);
      if (head === undefined) continue;
      const isDeprecated = this.#deprecated.channels.has(facts.name);
      const name = readVersionedName(facts.name);
      channels.push({ facts, head, version: this.#versions.get(head), isDeprecated, name });
    }
    // The choice among several must not depend on the form of the catalog.
    channels.sort((a, b) => compareBytes(a.facts.name, b.facts.name));
    this.#examineDeprecations(channels);
    this.#examineDefault(channels);
    this.#examineNames(channels);
    this.#examineGaps(channels);
    this.#examineHeads(channels);
    this.#examineForms();
  }

  #about(): CatalogSubject {
    const { name, origin } = this.#model.facts;
    return { package: name, origin };
  }

  #ofChannel({ facts }: HeadedChannel): CatalogSubject {
    return { package: facts.package, channel: facts.name, origin: facts.origin };
  }

  #examineDeprecations(channels: readonly HeadedChannel[]): void {
    if (this.#deprecated.package) return;
    const origin = this.#model.deprecations[0]?.origin;
    const about = { ...this.#about(), origin };
    if (channels.length > 0 && channels.every(({ isDeprecated }) => isDeprecated)) {
      const hint = 'deprecate the package too, or add a supported channel';
      this.#findings.add('all-channels-deprecated', about, 'all its channels are deprecated', hint);
      return;
    }
    for (const channel of channels) {
      const { facts, head, isDeprecated } = channel;
      if (isDeprecated && facts.name === this.#model.facts.defaultChannel) {
        const hint = 'set defaultChannel to a supported channel';
        const subject = { ...this.#about(), channel: facts.name, path: ['defaultChannel'] };
        this.#findings.add('default-channel-deprecated', subject, 'the default channel is deprecated', hint);
      }
      if (!isDeprecated && this.#deprecated.bundles.has(head)) {
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

  #examineDefault(channels: readonly HeadedChannel[]): void {
    const { defaultChannel } = this.#model.facts;
    const own = channels.find(({ facts }) => facts.name === defaultChannel);
    if (own?.version === undefined) return;
    let highest: HeadedChannel = own;
    for (const other of channels) {
      const { version } = other;
      if (version === undefined || other.isDeprecated || version.pre.length > 0) continue;
      if (isEarlyName(other.facts.name) && !isEarlyName(defaultChannel)) continue;
      if (compareVersions(version, highest.version as Version) > 0) highest = other;
    }
    if (highest === own) return;
    const subject = { ...this.#about(), channel: defaultChannel, path: ['defaultChannel'] };
    const [low, high] = [own.version, highest.version as Version].map(formatVersion);
    const message = `the default channel ends with ${low}, channel ${quoteGo(highest.facts.name)} with ${high}`;
    const hint = `set defaultChannel to ${quoteGo(highest.facts.name)} if it suits all users`;
    this.#findings.add('default-channel-lower', subject, message, hint);
  }

  /** Reports heads that do not match the version in the channel name, if those of similar channels do. */
  #examineNames(channels: readonly HeadedChannel[]): void {
    for (const group of groupByPrefix(channels).values()) {
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
  #examineGaps(channels: readonly HeadedChannel[]): void {
    const ranges = new SkipRanges();
    for (const group of groupByPrefix(channels).values()) {
      const minors = group.filter(({ name, isDeprecated }) => name?.minor !== undefined && !isDeprecated);
      minors.sort((a, b) => compareNames(a.name as VersionedName, b.name as VersionedName));
      for (const [index, next] of minors.entries()) {
        const before = minors[index - 1];
        if (before?.version === undefined || next.version === undefined) continue;
        if (before.name?.major !== next.name?.major || compareVersions(before.version, next.version) >= 0)
          continue;
        const { head } = before;
        const source = { name: head, version: { version: before.version } };
        const isListed = next.facts.entries.some((entry) => entry.name === head);
        if (isListed || new UpgradeGraph([next.facts], ranges).edgesFrom(source).length > 0) continue;
        const message = `head ${quoteGo(head)} of channel ${quoteGo(before.facts.name)} has no upgrade in this channel`;
        const hint =
          'replace it in an entry, or cover it with a skipRange: clusters that switch to this channel cannot upgrade';
        this.#findings.add('channel-gap', { ...this.#ofChannel(next), path: ['entries'] }, message, hint);
      }
    }
  }

  #examineHeads(channels: readonly HeadedChannel[]): void {
    const seen = new Set<string>();
    for (const { facts, head, isDeprecated } of channels) {
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
  #examineShown(record: BundleRecord, subject: CatalogSubject): void {
    const { csv, displayName, description, installsForAll, servesApis, needs } = record;
    if (csv === 'none') {
      const message = 'has neither olm.csv.metadata nor olm.bundle.object';
      const hint = 'render it again with opmate render: consoles cannot show it';
      this.#findings.add('csv-metadata', subject, message, hint);
    } else if (!displayName) {
      const hint = 'set spec.displayName of its ClusterServiceVersion';
      this.#findings.add('display-name', subject, 'has no display name', hint);
    }
    if (!description && !this.#context.isDescribed && csv !== 'none') {
      const hint = 'add a description to the package, or to the ClusterServiceVersion';
      this.#findings.add('description', this.#about(), 'has no description', hint);
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

  #examineForOpenShift(record: BundleRecord, subject: CatalogSubject): void {
    const { openshift } = this.#context;
    if (openshift === undefined) return;
    const { maxOpenShift, minKube, openShiftVersions } = record;
    const wanted = formatOpenShift(openshift);
    if (maxOpenShift !== undefined && compareOpenShift(maxOpenShift, openshift) < 0) {
      const message = `olm.maxOpenShiftVersion ${formatOpenShift(maxOpenShift)} is below OpenShift ${wanted}`;
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
      const message = `com.redhat.openshift.versions ${quoteGo(openShiftVersions)} excludes OpenShift ${wanted}`;
      const hint = 'remove the bundle from the catalog of that version';
      this.#findings.add('openshift-versions', subject, message, hint);
    }
  }

  /** Examines the form of ClusterServiceVersions. A bundle without an image can have objects only. */
  #examineForms(): void {
    const { openshift, records } = this.#context;
    const bundles = [...this.#model.bundles.values()].filter(({ image }) => image !== '');
    const of = (form: BundleRecord['csv']): BundleFacts[] =>
      bundles.filter((bundle) => records.get(bundle)?.csv === form);
    const [objects, metadata, both] = [of('objects'), of('metadata'), of('both')];
    const tell = (list: readonly BundleFacts[], message: string, hint: string): void => {
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
      const hint = 'convert all of them with opmate migrate --migrate-level bundle-object-to-csv-metadata';
      this.#findings.add('csv-metadata', this.#about(), message, hint, 'notice');
      return;
    }
    const wanted = formatOpenShift(openshift);
    if (compareOpenShift(openshift, firstWithCsvMetadata) >= 0) {
      const hint = 'convert it with opmate migrate --migrate-level bundle-object-to-csv-metadata';
      tell(
        [...objects, ...both],
        `has olm.bundle.object: OpenShift ${wanted} requires olm.csv.metadata instead`,
        hint,
      );
    } else {
      const hint = 'render it again without a migration level';
      tell(metadata, `has olm.csv.metadata only: OpenShift ${wanted} requires olm.bundle.object`, hint);
    }
  }
}

/** Groups channels whose names end with a version by the text before it. */
function groupByPrefix(channels: readonly HeadedChannel[]): Map<string, HeadedChannel[]> {
  const groups = new Map<string, HeadedChannel[]>();
  for (const channel of channels) {
    if (channel.name === undefined) continue;
    const group = groups.get(channel.name.prefix);
    if (group === undefined) groups.set(channel.name.prefix, [channel]);
    else group.push(channel);
  }
  return groups;
}

function compareNames(a: VersionedName, b: VersionedName): number {
  return a.major - b.major || (a.minor ?? -1) - (b.minor ?? -1) || (a.patch ?? -1) - (b.patch ?? -1);
}
