import { OfferIndex } from '../../graph/offer-index.js';
import type { Catalog } from '../../catalog/catalog.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { quoteGo } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { compareVersions, formatVersion } from '../../core/semver.js';
import { schemas } from '../../model/declarative-config.js';
import {
  type Need,
  type Offer,
  type SingleNeed,
  readNeed,
  readProvidedApi,
} from '../../model/dependency-needs.js';
import type { BundleFacts, CatalogFacts } from '../../model/facts.js';
import { readBundleVersion } from '../../graph/bundle-version.js';
import { readGraph } from '../../graph/channel-graph.js';
import type { ImageSetConfiguration, OperatorConfig } from '../image-set/image-set-config.js';
import type { CatalogSelection } from '../../catalog/selection/selection.js';
import { selectOperators } from './select-operators.js';

/** What to do about packages that the selected bundles need and that are not selected. */
export type DependencyMode = 'none' | 'report' | 'add';

/** A catalog of the configuration with what is taken of it. */
export interface DependencyCatalog {
  operator: OperatorConfig;
  catalog: Catalog;
  facts: CatalogFacts;
  selection: CatalogSelection;
}

export interface Closure {
  /** Those of the catalogs whose selection has grown, with the new one. */
  selections: Map<DependencyCatalog, CatalogSelection>;
  /** One sentence an addition: what was added, from where, and which bundle needs it. */
  added: string[];
  /** One sentence a need that nothing selected, or nothing at all, provides. */
  unmet: string[];
}

/**
 * Finds what the selected bundles need (`olm.package.required`, `olm.gvk.required`, `olm.constraint`) and no selected
 * bundle provides, over all given catalogs, and with `add` selects it, until nothing is missing. Of several bundles
 * that would do it takes one of the same catalog before others in the order of the configuration, of a selected
 * package before others, of a selected channel before the default channel before others, and in a channel the one
 * nearest to its head. Selected bundles are read again one by one; a catalog is read again as a whole only where it
 * is taken as it is or something is missing. Throws what selection and reading the catalogs throw.
 */
export async function closeDependencies(
  config: ImageSetConfiguration,
  catalogs: readonly DependencyCatalog[],
  mode: DependencyMode,
  options: CancelOptions,
): Promise<Closure> {
  if (mode === 'none') return { selections: new Map(), added: [], unmet: [] };
  const growing = catalogs.map((catalog) => new GrowingCatalog(catalog, config.file));
  return new DependencyClosure(growing, options).close(mode);
}

/** A selected bundle: what it provides and what it needs. */
interface SelectedBundle extends Offer {
  source: GrowingCatalog;
  name: string;
  needs: readonly Need[];
  /** Why it was added, from what the configuration asks for onwards; empty for what it asks for itself. */
  because: readonly string[];
}

/** What the properties of a bundle say of others. */
interface BundleProperties {
  apis: string[];
  needs: Need[];
}

/** A bundle that is not selected and could meet a need, in a channel that leads to it. */
interface Candidate {
  source: GrowingCatalog;
  package: string;
  channel: string;
  bundle: BundleFacts;
}

interface BundleOffer {
  bundle: BundleFacts;
  offer: Offer;
}

/** A catalog of the image set with what is selected of it so far. */
class GrowingCatalog {
  readonly given: DependencyCatalog;
  readonly name: string;
  readonly #file: string;
  readonly #packages: ReadonlyMap<string, CatalogFacts>;
  readonly #selected = new Map<string, { channels: ReadonlySet<string>; bundles: ReadonlySet<string> }>();
  /** Bundles that are wanted in addition to what the configuration asks for. */
  readonly #also = new Map<string, Map<string, Set<string>>>();
  /** APIs of all bundles, and packages by API; known once the whole catalog has been read again. */
  readonly #apis = new Map<string, string[]>();
  readonly #packagesByApi = new Map<string, Set<string>>();
  readonly #offers = new Map<string, ReadonlyMap<string, readonly BundleOffer[]>>();
  #isIndexed = false;

  constructor(dependencyCatalog: DependencyCatalog, file: string) {
    this.given = dependencyCatalog;
    this.name = dependencyCatalog.operator.catalog;
    this.#file = file;
    const { facts, selection } = dependencyCatalog;
    this.#packages = splitByPackage(facts);
    for (const part of splitByPackage(selection.facts)) this.#note(...part);
  }

  get hasGrown(): boolean {
    return this.#also.size > 0;
  }

  /** What is selected of the whole catalog, with what was added. */
  select(): CatalogSelection {
    const { facts, operator } = this.given;
    return selectOperators(facts, operator, this.#file, this.#also);
  }

  isSelected(packageName: string): boolean {
    return this.#selected.has(packageName);
  }

  #note(name: string, { channels, bundles }: CatalogFacts): void {
    this.#selected.set(name, {
      channels: new Set(channels.map((channel) => channel.name)),
      bundles: new Set(bundles.map((bundle) => bundle.name)),
    });
  }

  /**
   * Selects a bundle, and returns the bundles that were not selected before; undefined where no valid selection
   * holds it.
   */
  add({
    package: name,
    channel,
    bundle,
  }: Candidate): { bundles: BundleFacts[]; defaultChannel: string } | undefined {
    const before = this.#selected.get(name)?.bundles ?? new Set();
    const also = new Map([...(this.#also.get(name) ?? [])].map(([key, names]) => [key, new Set(names)]));
    also.set(channel, new Set(also.get(channel)).add(bundle.name));
    let facts = this.#trySelection(name, also);
    if (facts !== undefined && !holdsAll(facts, before)) {
      // What was kept for the sake of a valid graph would not be needed any more. It stays.
      for (const channelFacts of this.#packages.get(name)?.channels ?? []) {
        if (this.#selected.get(name)?.channels.has(channelFacts.name) !== true) continue;
        const names = channelFacts.entries.map((entry) => entry.name).filter((entry) => before.has(entry));
        also.set(channelFacts.name, new Set([...(also.get(channelFacts.name) ?? []), ...names]));
      }
      facts = this.#trySelection(name, also);
    }
    if (facts === undefined || !holdsAll(facts, [...before, bundle.name])) return undefined;
    this.#also.set(name, also);
    this.#note(name, facts);
    const defaultChannel = facts.packages[0]?.defaultChannel ?? '';
    return { bundles: facts.bundles.filter((bundleFacts) => !before.has(bundleFacts.name)), defaultChannel };
  }

  #trySelection(name: string, also: Map<string, Set<string>>): CatalogFacts | undefined {
    const { operator } = this.given;
    const packages = operator.packages?.filter((packageConfig) => packageConfig.name === name);
    // A catalog without a list of packages has all of them, so this one is asked for.
    const operatorConfig: OperatorConfig = { ...operator, packages };
    try {
      const facts = this.#packages.get(name) as CatalogFacts;
      return selectOperators(facts, operatorConfig, this.#file, new Map([[name, also]])).facts;
    } catch (error) {
      if (error instanceof OpmateError && error.code !== 'INTERNAL') return undefined;
      throw error;
    }
  }

  /** Bundles that could meet a need, best first. The catalog must have been indexed. */
  *candidates(need: SingleNeed): Generator<Candidate, void, undefined> {
    const names = need.package === undefined ? this.#packagesByApi.get(need.api ?? '') : [need.package];
    const byChoice = sortedByBytes(names ?? []).sort(
      (a, b) => Number(this.isSelected(b)) - Number(this.isSelected(a)),
    );
    for (const name of byChoice) yield* this.#iterateCandidates(name, need);
  }

  *#iterateCandidates(name: string, need: SingleNeed): Generator<Candidate, void, undefined> {
    const part = this.#packages.get(name);
    if (part === undefined) return;
    const own = part.packages[0]?.defaultChannel;
    const selected = this.#selected.get(name)?.channels;
    const rank = (channel: string): number =>
      (selected?.has(channel) === true ? 0 : 2) + (channel === own ? 0 : 1);
    const channels = [...this.#getOffers(name, part)].sort(
      ([a], [b]) => rank(a) - rank(b) || compareBytes(a, b),
    );
    for (const [channel, offers] of channels) {
      const bundleOffer = offers.find(({ offer }) => need.isMetBy(offer));
      // What is wrong with the channel would be wrong for its other entries, too.
      if (bundleOffer !== undefined)
        yield { source: this, package: name, channel, bundle: bundleOffer.bundle };
    }
  }

  /** By channel, what its bundles are to others: from the head onwards, each before those that it skips. */
  #getOffers(name: string, part: CatalogFacts): ReadonlyMap<string, readonly BundleOffer[]> {
    const known = this.#offers.get(name);
    if (known !== undefined) return known;
    const bundles = new Map<string, BundleOffer>();
    for (const bundle of part.bundles) {
      if (bundles.has(bundle.name)) continue;
      const apis = this.getApis(toKey(name, bundle.name));
      bundles.set(bundle.name, {
        bundle,
        offer: { package: name, version: readBundleVersion(bundle), apis },
      });
    }
    const offers = new Map<string, BundleOffer[]>();
    for (const channel of part.channels) {
      if (offers.has(channel.name)) continue;
      const { chain, entries } = readGraph(channel.entries);
      const names = new Set(chain.flatMap((entry) => [entry, ...(entries.get(entry)?.skips ?? [])]));
      const reached = [...names].map((entry) => (entries.has(entry) ? bundles.get(entry) : undefined));
      offers.set(
        channel.name,
        reached.filter((offer) => offer !== undefined),
      );
    }
    this.#offers.set(name, offers);
    return offers;
  }

  /** The least and the most version of a package; undefined where the catalog does not have it. */
  findVersions(name: string): string | undefined {
    const bundles = this.#packages.get(name)?.bundles;
    return bundles === undefined ? undefined : versionsText(bundles);
  }

  /** Reads the properties of these bundles, one by one. */
  async *readBundles(
    bundles: readonly BundleFacts[],
    { signal }: CancelOptions,
  ): AsyncGenerator<{ bundle: BundleFacts; properties: BundleProperties }, void, undefined> {
    for (const bundle of bundles) {
      throwIfCancelled(signal);
      const value = bundle.origin === undefined ? {} : await this.given.catalog.read(bundle.origin);
      yield { bundle, properties: readProperties(value, true) };
    }
  }

  /** Reads the whole catalog and keeps what its bundles provide. Does nothing the second time. */
  async index({ signal }: CancelOptions, onNeeds?: (key: string, needs: Need[]) => void): Promise<void> {
    if (this.#isIndexed) return;
    const known = new Map<string, string>();
    for await (const meta of this.given.catalog.metas({ signal, withoutManifests: true })) {
      if (meta.schema !== schemas.bundle) continue;
      const key = toKey(meta.package, meta.name);
      if (this.#apis.has(key)) continue;
      const { apis, needs } = readProperties(meta.value, onNeeds !== undefined);
      if (needs.length > 0) onNeeds?.(key, needs);
      // One text for an API, however many bundles provide it.
      const texts = apis.map((api) => known.get(api) ?? (known.set(api, api), api));
      this.#apis.set(key, texts);
      for (const api of texts) {
        getOrAdd(this.#packagesByApi, api, () => new Set()).add(meta.package);
      }
    }
    this.#isIndexed = true;
  }

  getApis(key: string): readonly string[] {
    return this.#apis.get(key) ?? [];
  }
}

/** Bundles that need the same, of one package. */
interface MissingNeed {
  need: Need;
  bundles: SelectedBundle[];
}

class DependencyClosure {
  readonly #catalogs: readonly GrowingCatalog[];
  readonly #options: CancelOptions;
  readonly #offers = new OfferIndex({ meetsUnclear: false });
  readonly #queue: SelectedBundle[] = [];
  readonly #added: string[] = [];

  constructor(catalogs: readonly GrowingCatalog[], options: CancelOptions) {
    this.#catalogs = catalogs;
    this.#options = options;
  }

  async close(mode: 'report' | 'add'): Promise<Closure> {
    for (const source of this.#catalogs) await this.#readSelection(source);
    const missing = new Map<string, MissingNeed>();
    const check = async (bundle: SelectedBundle, need: Need): Promise<void> => {
      if (mode === 'add') await this.#provide(need, bundle);
      if (this.#offers.meets(need)) return;
      const key = toKey(bundle.source.name, bundle.package, need.text);
      getOrAdd(missing, key, () => ({ need, bundles: [] })).bundles.push(bundle);
    };
    // Grows while it is worked on. Packages come first: what one of them provides leaves no choice to be made.
    const queue = this.#queue;
    for (let named = 0, others = 0; others < queue.length;) {
      throwIfCancelled(this.#options.signal);
      const namesPackage = named < queue.length;
      const bundle = queue[namesPackage ? named++ : others++] as SelectedBundle;
      for (const need of bundle.needs) {
        if ((need.kind === 'one' && need.package !== undefined) === namesPackage) await check(bundle, need);
      }
    }
    const unmet: string[] = [];
    // What was missing for one bundle may have been added for another one since.
    for (const { need, bundles } of missing.values()) {
      for (const part of this.#offers.unmetParts(need))
        unmet.push(await this.#describeMissing(part, bundles));
    }
    const grown = this.#catalogs.filter((source) => source.hasGrown);
    return {
      selections: new Map(grown.map((source) => [source.given, source.select()])),
      added: this.#added,
      unmet,
    };
  }

  async #readSelection(source: GrowingCatalog): Promise<void> {
    const { isWhole, facts } = source.given.selection;
    if (!isWhole) {
      for await (const { bundle, properties } of source.readBundles(facts.bundles, this.#options)) {
        this.#select(source, bundle, properties, []);
      }
      return;
    }
    const needs = new Map<string, Need[]>();
    await source.index(this.#options, (key, matches) => needs.set(key, matches));
    for (const bundle of facts.bundles) {
      const key = toKey(bundle.package, bundle.name);
      this.#select(source, bundle, { apis: source.getApis(key), needs: needs.get(key) ?? [] }, []);
    }
  }

  #select(
    source: GrowingCatalog,
    facts: BundleFacts,
    { apis, needs }: { apis: readonly string[]; needs: readonly Need[] },
    because: readonly string[],
  ): void {
    const { package: packageName, name } = facts;
    const bundle = {
      source,
      package: packageName,
      name,
      version: readBundleVersion(facts),
      apis,
      needs,
      because,
    };
    this.#offers.add(bundle);
    if (needs.length > 0) this.#queue.push(bundle);
  }

  /** Adds what meets a need, as far as there is something. */
  async #provide(need: Need, bundle: SelectedBundle): Promise<void> {
    if (this.#offers.meets(need) || need.kind === 'unclear') return;
    if (need.kind === 'one') {
      await this.#provideOne(need, bundle);
      return;
    }
    for (const part of need.parts) {
      await this.#provide(part, bundle);
      if (need.kind === 'some' && this.#offers.meets(part)) return;
    }
  }

  async #provideOne(need: SingleNeed, bundle: SelectedBundle): Promise<void> {
    for await (const candidate of this.#candidates(need, bundle)) {
      const { source, package: name, channel } = candidate;
      const wasSelected = source.isSelected(name);
      const added = source.add(candidate);
      if (added === undefined) continue;
      const because = shortened([...bundle.because, `${quoteGo(bundle.name)} needs ${need.text}`]);
      const isNewDefault = !wasSelected && added.defaultChannel !== findDefaultChannel(source, name);
      const what = `package ${quoteGo(name)} ${versionsText(added.bundles)} in ${channel}`;
      const from = `${isNewDefault ? ', now its default channel,' : ''} from ${source.name}`;
      this.#added.push(`${what}${from}: ${because.join(', and ')}`);
      for await (const item of source.readBundles(added.bundles, this.#options)) {
        this.#select(source, item.bundle, item.properties, because);
      }
      return;
    }
  }

  /** What could meet a need, best first. */
  async *#candidates(need: SingleNeed, { source: own }: SelectedBundle): AsyncGenerator<Candidate, void> {
    for (const source of [own, ...this.#catalogs.filter((catalog) => catalog !== own)]) {
      await source.index(this.#options);
      yield* source.candidates(need);
    }
  }

  async #describeMissing(need: Need, bundles: readonly SelectedBundle[]): Promise<string> {
    const subject = `${getNames(bundles)} ${bundles.length === 1 ? 'needs' : 'need'} ${need.text}`;
    if (need.kind === 'unclear') return `${subject}, which opmate does not understand`;
    if (need.kind !== 'one') return `${subject}, of which nothing is selected`;
    for await (const { source, channel, bundle } of this.#candidates(need, bundles[0] as SelectedBundle)) {
      return `${subject}, which is not selected: ${source.name} has ${quoteGo(bundle.name)} in ${channel}`;
    }
    for (const source of this.#catalogs) {
      const versions = need.package === undefined ? undefined : source.findVersions(need.package);
      if (versions !== undefined) return `${subject}, of which ${source.name} has ${versions}`;
    }
    return `${subject}, which no given catalog has`;
  }
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

/** The parts of a catalog by package. */
function splitByPackage({
  packages,
  channels,
  bundles,
  deprecations,
}: CatalogFacts): Map<string, CatalogFacts> {
  const parts = new Map<string, CatalogFacts>();
  for (const item of packages) {
    getOrAdd(parts, item.name, () => ({ packages: [item], channels: [], bundles: [], deprecations: [] }));
  }
  for (const channel of channels) parts.get(channel.package)?.channels.push(channel);
  for (const bundle of bundles) parts.get(bundle.package)?.bundles.push(bundle);
  for (const item of deprecations) parts.get(item.package)?.deprecations.push(item);
  return parts;
}

function holdsAll({ bundles }: CatalogFacts, names: Iterable<string>): boolean {
  const held = new Set(bundles.map(({ name }) => name));
  return [...names].every((name) => held.has(name));
}

function findDefaultChannel({ given: { facts } }: GrowingCatalog, name: string): string | undefined {
  return facts.packages.find((packageFacts) => packageFacts.name === name)?.defaultChannel;
}

/** `1.2.0`, or `1.2.0 to 1.4.0`. */
function versionsText(bundles: readonly BundleFacts[]): string {
  const versions = bundles
    .map(readBundleVersion)
    .filter((version) => version !== undefined)
    .sort(compareVersions)
    .map(formatVersion);
  const [least = 'without a version'] = versions;
  const most = versions.at(-1) ?? least;
  return least === most ? least : `${least} to ${most}`;
}

const maxReasons = 6;

/** The first reason and the last ones. */
function shortened(reasons: readonly string[]): readonly string[] {
  if (reasons.length <= maxReasons) return reasons;
  return [reasons[0] as string, '…', ...reasons.slice(2 - maxReasons)];
}

const maxNamed = 3;

/** `"a.v1", "a.v2" and 3 more`. */
function getNames(bundles: readonly SelectedBundle[]): string {
  const names = bundles.slice(0, maxNamed).map(({ name }) => quoteGo(name));
  const more = bundles.length - names.length;
  return `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** No name holds the separator in what is compared: the parts are as many for each. */
function toKey(...parts: string[]): string {
  return parts.join('\0');
}
