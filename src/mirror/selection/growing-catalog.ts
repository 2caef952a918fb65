import type { Catalog } from '../../catalog/catalog.js';
import type { CatalogSelection } from '../../catalog/selection/selection.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { compareVersions, formatVersion } from '../../core/semver.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { readBundleVersion } from '../../graph/bundle-version.js';
import { readGraph } from '../../graph/channel-graph.js';
import { type PackageModel, readPackages, toFacts } from '../../graph/package-model.js';
import { schemas } from '../../model/declarative-config.js';
import {
  type Need,
  type Offer,
  type SingleNeed,
  readNeed,
  readProvidedApi,
} from '../../model/dependency-needs.js';
import type { BundleFacts, CatalogFacts } from '../../model/facts.js';
import type { OperatorConfig } from '../image-set/image-set-config.js';
import { selectOperators } from './select-operators.js';

/** A catalog of the configuration with its selection. */
export interface DependencyCatalog {
  operator: OperatorConfig;
  catalog: Catalog;
  facts: CatalogFacts;
  selection: CatalogSelection;
}

/** APIs and dependencies in the properties of a bundle. */
interface BundleProperties {
  apis: string[];
  needs: Need[];
}

/** An unselected bundle that meets a dependency, with a channel that contains it. */
export interface Candidate {
  package: string;
  channel: string;
  bundle: BundleFacts;
}

interface BundleOffer {
  bundle: BundleFacts;
  offer: Offer;
}

/** A catalog with a selection that grows by dependencies. */
export class GrowingCatalog {
  readonly origin: DependencyCatalog;
  readonly name: string;
  readonly #file: string;
  readonly #packages: ReadonlyMap<string, PackageModel>;
  readonly #selected: Map<string, PackageModel>;
  /** Bundles added to the selection of the configuration, by package and channel. */
  readonly #added = new Map<string, Map<string, Set<string>>>();
  /** APIs of all bundles; complete after `index`. */
  readonly #apisByBundle = new Map<string, string[]>();
  /** Complete after `index`. */
  readonly #packagesByApi = new Map<string, Set<string>>();
  readonly #offersByPackage = new Map<string, ReadonlyMap<string, readonly BundleOffer[]>>();
  #isIndexed = false;

  /** Starts from the selection of the configuration in `file`. */
  constructor(origin: DependencyCatalog, file: string) {
    this.origin = origin;
    this.name = origin.operator.catalog;
    this.#file = file;
    this.#packages = readPackages(origin.facts);
    this.#selected = readPackages(origin.selection.facts);
  }

  hasGrown(): boolean {
    return this.#added.size > 0;
  }

  select(): CatalogSelection {
    return selectOperators(this.origin.facts, this.origin.operator, this.#file, this.#added);
  }

  isSelected(packageName: string): boolean {
    return this.#selected.has(packageName);
  }

  /** Selects a bundle, and returns newly selected bundles; undefined if no valid selection contains it. */
  add({
    package: name,
    channel,
    bundle,
  }: Candidate): { bundles: BundleFacts[]; defaultChannel: string } | undefined {
    const before = this.#selected.get(name)?.bundles ?? new Map<string, BundleFacts>();
    const also = new Map([...(this.#added.get(name) ?? [])].map(([key, names]) => [key, new Set(names)]));
    also.set(channel, new Set(also.get(channel)).add(bundle.name));
    let after = this.#trySelection(name, also);
    if (after !== undefined && !containsAll(after, before.keys())) {
      // Bundles that only kept the previous graph valid stay selected.
      for (const channelFacts of this.#packages.get(name)?.channels.values() ?? []) {
        if (this.#selected.get(name)?.channels.has(channelFacts.name) !== true) continue;
        const names = channelFacts.entries.map((entry) => entry.name).filter((entry) => before.has(entry));
        also.set(channelFacts.name, new Set([...(also.get(channelFacts.name) ?? []), ...names]));
      }
      after = this.#trySelection(name, also);
    }
    if (after === undefined || !containsAll(after, [...before.keys(), bundle.name])) return undefined;
    this.#added.set(name, also);
    this.#selected.set(name, after);
    const bundles = [...after.bundles.values()].filter((other) => !before.has(other.name));
    return { bundles, defaultChannel: after.facts.defaultChannel };
  }

  #trySelection(name: string, also: Map<string, Set<string>>): PackageModel | undefined {
    const wanted = this.origin.operator.packages?.filter((packageConfig) => packageConfig.name === name);
    // Without a list of packages, all are selected.
    const operatorConfig: OperatorConfig = { ...this.origin.operator, packages: wanted };
    try {
      const facts = toFacts(this.#packages.get(name) as PackageModel);
      const selection = selectOperators(facts, operatorConfig, this.#file, new Map([[name, also]]));
      return readPackages(selection.facts).get(name);
    } catch (error) {
      if (error instanceof OpmateError && error.code !== 'INTERNAL') return undefined;
      throw error;
    }
  }

  /** Yields bundles that meet a dependency, best first. Requires `index`. */
  *findCandidates(need: SingleNeed): Generator<Candidate, void, undefined> {
    const names = need.package === undefined ? this.#packagesByApi.get(need.api ?? '') : [need.package];
    const selectedFirst = sortedByBytes(names ?? []).sort(
      (a, b) => Number(this.isSelected(b)) - Number(this.isSelected(a)),
    );
    for (const name of selectedFirst) yield* this.#findInPackage(name, need);
  }

  *#findInPackage(name: string, need: SingleNeed): Generator<Candidate, void, undefined> {
    const model = this.#packages.get(name);
    if (model === undefined) return;
    const { defaultChannel } = model.facts;
    const own = this.#selected.get(name)?.channels;
    const rank = (channel: string): number =>
      (own?.has(channel) === true ? 0 : 2) + (channel === defaultChannel ? 0 : 1);
    const channels = [...this.#getOffers(name, model)].sort(
      ([a], [b]) => rank(a) - rank(b) || compareBytes(a, b),
    );
    for (const [channel, offers] of channels) {
      const bundleOffer = offers.find(({ offer }) => need.isMetBy(offer));
      // A channel that is invalid for one entry is invalid for the others.
      if (bundleOffer !== undefined) yield { package: name, channel, bundle: bundleOffer.bundle };
    }
  }

  /** Returns what the bundles of each channel provide, from the head down, each before its skipped ones. */
  #getOffers(name: string, model: PackageModel): ReadonlyMap<string, readonly BundleOffer[]> {
    const known = this.#offersByPackage.get(name);
    if (known !== undefined) return known;
    const bundles = new Map<string, BundleOffer>();
    for (const bundle of model.bundles.values()) {
      const apis = this.getApis(joinKey(name, bundle.name));
      bundles.set(bundle.name, {
        bundle,
        offer: { package: name, version: readBundleVersion(bundle), apis },
      });
    }
    const offers = new Map<string, BundleOffer[]>();
    for (const channel of model.channels.values()) {
      const { chain, entries } = readGraph(channel.entries);
      const names = new Set(chain.flatMap((entry) => [entry, ...(entries.get(entry)?.skips ?? [])]));
      const reached = [...names].map((entry) => (entries.has(entry) ? bundles.get(entry) : undefined));
      offers.set(
        channel.name,
        reached.filter((offer) => offer !== undefined),
      );
    }
    this.#offersByPackage.set(name, offers);
    return offers;
  }

  /** Returns the version range of a package; undefined if the catalog lacks it. */
  findVersions(name: string): string | undefined {
    const bundles = this.#packages.get(name)?.bundles;
    return bundles && formatVersionRange([...bundles.values()]);
  }

  /** Reads the properties of bundles, one by one. */
  async *readBundles(
    bundles: readonly BundleFacts[],
    { signal }: CancelOptions,
  ): AsyncGenerator<{ bundle: BundleFacts; properties: BundleProperties }, void, undefined> {
    for (const bundle of bundles) {
      throwIfCancelled(signal);
      const value = bundle.origin === undefined ? {} : await this.origin.catalog.read(bundle.origin);
      yield { bundle, properties: readProperties(value, true) };
    }
  }

  /** Reads the APIs of the whole catalog, once. */
  async index({ signal }: CancelOptions, onNeeds?: (key: string, needs: Need[]) => void): Promise<void> {
    if (this.#isIndexed) return;
    const known = new Map<string, string>();
    for await (const meta of this.origin.catalog.metas({ signal, withoutManifests: true })) {
      if (meta.schema !== schemas.bundle) continue;
      const key = joinKey(meta.package, meta.name);
      if (this.#apisByBundle.has(key)) continue;
      const { apis, needs } = readProperties(meta.value, onNeeds !== undefined);
      if (needs.length > 0) onNeeds?.(key, needs);
      // Equal APIs share one string.
      const texts = apis.map((api) => known.get(api) ?? (known.set(api, api), api));
      this.#apisByBundle.set(key, texts);
      for (const api of texts) {
        getOrAdd(this.#packagesByApi, api, () => new Set()).add(meta.package);
      }
    }
    this.#isIndexed = true;
  }

  getDefaultChannel(name: string): string | undefined {
    return this.#packages.get(name)?.facts.defaultChannel;
  }

  getApis(key: string): readonly string[] {
    return this.#apisByBundle.get(key) ?? [];
  }
}

/** Returns `1.2.0`, or `1.2.0 to 1.4.0`. */
export function formatVersionRange(bundles: readonly BundleFacts[]): string {
  const versions = bundles
    .map(readBundleVersion)
    .filter((version) => version !== undefined)
    .sort(compareVersions)
    .map(formatVersion);
  const [minimum = 'without a version'] = versions;
  const maximum = versions.at(-1) ?? minimum;
  return minimum === maximum ? minimum : `${minimum} to ${maximum}`;
}

function readProperties(value: JsonObject, withNeeds: boolean): BundleProperties {
  const bundleProperties: BundleProperties = { apis: [], needs: [] };
  const properties = value['properties'];
  if (!Array.isArray(properties)) return bundleProperties;
  for (const property of properties) {
    if (!isJsonObject(property)) continue;
    const { type, value: input = null } = property;
    if (typeof type !== 'string') continue;
    const api = readProvidedApi({ type, value: input });
    if (api !== undefined) bundleProperties.apis.push(api);
    else if (withNeeds) {
      const need = readNeed(type, input);
      if (need !== undefined && !bundleProperties.needs.some(({ text }) => text === need.text))
        bundleProperties.needs.push(need);
    }
  }
  return bundleProperties;
}

function containsAll({ bundles }: PackageModel, names: Iterable<string>): boolean {
  return [...names].every((name) => bundles.has(name));
}

/** Returns a key of names. */
export function joinKey(...parts: string[]): string {
  return parts.join('\0');
}
