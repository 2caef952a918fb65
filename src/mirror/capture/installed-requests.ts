import { meetsSelector } from '../../kube/label-selector.js';
import { getOrAdd } from '../../core/groups.js';
import { type Version, parseTolerantVersion, parseVersion, tryParse } from '../../core/semver.js';
import { quoteShort } from '../../document/field.js';
import type { CatalogFacts } from '../../model/facts.js';
import type { CaptureWarnings } from './capture-warnings.js';
import type { ClusterCatalog, ClusterObjects, Extension, Subscription } from './cluster-objects.js';
import { type MirrorSources, isImage } from './mirror-sources.js';

/** An object that needs a package. */
export interface PackageRequest {
  title: string;
  reason: string;
  package: string;
  /** Empty for the default channel, or any channel. */
  channels: string[];
  isAnyChannel: boolean;
  bundle: string;
  version: Version | undefined;
}

/** Requests of one catalog image. */
export interface CatalogRequests {
  /** Objects of the cluster that use it. */
  reasons: Set<string>;
  requests: PackageRequest[];
}

/** Maps the Subscriptions and ClusterExtensions of a cluster to packages of catalogs. */
export class InstalledRequests {
  /** Requests by source image. */
  readonly requested = new Map<string, CatalogRequests>();
  readonly #objects: ClusterObjects;
  readonly #knownFacts: ReadonlyMap<string, CatalogFacts>;
  readonly #sources: MirrorSources;
  readonly #warnings: CaptureWarnings;

  constructor(
    objects: ClusterObjects,
    knownFacts: ReadonlyMap<string, CatalogFacts>,
    sources: MirrorSources,
    warnings: CaptureWarnings,
  ) {
    this.#objects = objects;
    this.#knownFacts = knownFacts;
    this.#sources = sources;
    this.#warnings = warnings;
  }

  addAll(): void {
    for (const subscription of this.#objects.subscriptions) this.#addSubscription(subscription);
    for (const extension of this.#objects.extensions) this.#addExtension(extension);
    this.#warnOfOtherCsvs();
  }

  #addSubscription(subscription: Subscription): void {
    const { title, source, channel } = subscription;
    const catalog = this.#objects.catalogSources.get(source);
    if (catalog === undefined)
      return this.#warnings.addUnmapped(title, `CatalogSource ${source} is not among the objects`);
    const { bundle, state } = getBundle(subscription);
    const version = this.#findVersion(title, bundle, this.#csvVersion(subscription.namespace, bundle));
    const where = channel === '' ? 'the default channel' : `channel ${channel}`;
    this.#addRequest(catalog, {
      title,
      bundle,
      version,
      package: subscription.package,
      reason: `${title}: ${state}, ${where}`,
      channels: channel === '' ? [] : [channel],
      isAnyChannel: false,
    });
  }

  #addExtension(extension: Extension): void {
    const { title, channels, bundle, range } = extension;
    const catalog = this.#findCatalog(extension);
    if (catalog === undefined) return;
    const version = bundle === '' ? undefined : this.#findVersion(title, bundle, extension.version);
    const state = bundle === '' ? 'not installed' : `installed ${bundle}`;
    const where = channels.length === 0 ? 'any channel' : `channels ${channels.join(', ')}`;
    this.#addRequest(catalog, {
      title,
      channels,
      bundle,
      version,
      package: extension.package,
      isAnyChannel: channels.length === 0,
      reason: `${title}: ${state}, ${where}${range === '' ? '' : `, version ${range}`}`,
    });
  }

  /** Returns the catalog of an extension, which its status does not contain. */
  #findCatalog({ title, selector, package: packageName, bundle }: Extension): ClusterCatalog | undefined {
    const candidates = [...this.#objects.clusterCatalogs.values()].filter(
      ({ labels, isEnabled, image }) => isEnabled && image !== undefined && meetsSelector(labels, selector),
    );
    if (candidates.length === 0) {
      this.#warnings.addUnmapped(title, 'no ClusterCatalog among the objects that it may be from');
      return undefined;
    }
    const known = candidates.flatMap((catalog) => {
      const facts = this.#findFacts(catalog);
      return facts === undefined ? [] : [{ catalog, facts }];
    });
    const holding = known.filter(({ facts }) => facts.packages.some(({ name }) => name === packageName));
    const exact = holding.filter(({ facts }) =>
      facts.bundles.some((bundleFacts) => bundleFacts.package === packageName && bundleFacts.name === bundle),
    );
    const fits = exact.length > 0 ? exact : holding;
    const unknown = candidates.filter((catalog) => this.#findFacts(catalog) === undefined);
    const left = fits.length > 0 ? fits.map(({ catalog }) => catalog) : unknown;
    const highest = Math.max(...left.map(({ priority }) => priority));
    const chosen = left.filter(({ priority }) => priority === highest);
    const [only] = chosen;
    if (only !== undefined && (left.length === 1 || (fits.length > 0 && chosen.length === 1))) return only;
    const names = (left.length === 0 ? candidates : left).map((catalog) => catalog.title).join(', ');
    if (left.length === 0)
      this.#warnings.addUnmapped(title, `package ${quoteShort(packageName)} is in none of ${names}`);
    else {
      const hint = 'specify the catalogs with options.catalogs IMAGE or options.catalogs IMAGE=DIRECTORY';
      this.#warnings.addUnmapped(title, `may be from any of ${names}`, hint);
    }
    return undefined;
  }

  #findFacts({ image = '' }: ClusterCatalog): CatalogFacts | undefined {
    return this.#knownFacts.get(image) ?? this.#knownFacts.get(this.#sources.getSource(image));
  }

  #addRequest(catalog: ClusterCatalog, request: PackageRequest): void {
    const { title } = request;
    const texts = [request.package, ...request.channels];
    const isPlain = (text: string): boolean => text !== '' && text.length <= 253 && !/[\p{C}\s]/u.test(text);
    const bad = texts.find((text) => !isPlain(text));
    if (bad !== undefined) return this.#warnings.addUnmapped(title, `${quoteShort(bad)} is not a name`);
    if (catalog.image === undefined) {
      const hint = 'set the image of this catalog in the configuration';
      return this.#warnings.addUnmapped(title, `${catalog.title} is not made of an image`, hint);
    }
    const image = this.#sources.getSource(catalog.image);
    if (!isImage(image))
      return this.#warnings.addUnmapped(
        title,
        `${catalog.title}: invalid image ${quoteShort(catalog.image)}`,
      );
    const known = getOrAdd(this.requested, image, () => ({
      reasons: new Set<string>(),
      requests: [] as PackageRequest[],
    }));
    known.reasons.add(
      image === catalog.image ? catalog.title : `${catalog.title}, a mirror at ${catalog.image}`,
    );
    const isFirst = known.requests.length === 0;
    if (image === catalog.image && isFirst && this.#sources.isUnknownMirror(catalog, image)) {
      // Mirroring from there needs the mirror, and copies a part.
      const problem = `${image} is a mirror, and its source is unknown`;
      const hint = 'specify the lock of the mirror run, or the source of this catalog';
      this.#warnings.add(catalog.title, problem, hint, 'unknown-source');
    }
    known.requests.push(request);
  }

  #csvVersion(namespace: string, name: string): string {
    const all = this.#objects.csvs.filter((csv) => csv.name === name);
    return (all.find((csv) => csv.namespace === namespace) ?? all[0])?.version ?? '';
  }

  #findVersion(title: string, bundle: string, text: string): Version | undefined {
    if (bundle === '') return undefined;
    const version = tryParse(parseVersion, text) ?? tryParse(parseTolerantVersion, text);
    if (version !== undefined) return version;
    const inName = /\.v?(\d+\.\d+\.\d+(?:[-+.].*)?)$/.exec(bundle)?.[1] ?? '';
    const guessed = tryParse(parseVersion, inName);
    if (guessed === undefined)
      this.#warnings.add(
        title,
        `version of ${quoteShort(bundle)} not found: no minVersion`,
        'add its ClusterServiceVersion',
      );
    else if (text === '')
      this.#warnings.add(
        title,
        `ClusterServiceVersion ${quoteShort(bundle)} not found: version ${inName} taken from its name`,
      );
    return guessed;
  }

  /** Warns about CSVs without a Subscription, except OLM's package server. */
  #warnOfOtherCsvs(): void {
    const known = new Set(
      this.#objects.subscriptions.flatMap(({ namespace, installedCsv, currentCsv }) => [
        `${namespace}/${installedCsv}`,
        `${namespace}/${currentCsv}`,
      ]),
    );
    for (const { namespace, name, isCopy } of this.#objects.csvs) {
      if (isCopy || name === 'packageserver' || known.has(`${namespace}/${name}`)) continue;
      this.#warnings.addUnmapped(`ClusterServiceVersion ${namespace}/${name}`, 'no Subscription installs it');
    }
  }
}

/** Returns the bundle to keep, with its state. */
function getBundle({ installedCsv, startingCsv, currentCsv }: Subscription): {
  bundle: string;
  state: string;
} {
  if (installedCsv !== '') {
    const next =
      currentCsv === '' || currentCsv === installedCsv ? '' : ` (upgrade to ${currentCsv} pending)`;
    return { bundle: installedCsv, state: `installed ${installedCsv}${next}` };
  }
  if (startingCsv !== '') return { bundle: startingCsv, state: `not installed, starts with ${startingCsv}` };
  return { bundle: '', state: 'not installed' };
}
