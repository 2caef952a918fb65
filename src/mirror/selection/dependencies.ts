import type { CatalogSelection } from '../../catalog/selection/selection.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { throwIfCancelled } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { quoteGo } from '../../document/go-json.js';
import { readBundleVersion } from '../../graph/bundle-version.js';
import { OfferIndex } from '../../graph/offer-index.js';
import type { Need, Offer, SingleNeed } from '../../model/dependency-needs.js';
import type { BundleFacts } from '../../model/facts.js';
import type { ImageSetConfiguration } from '../image-set/image-set-config.js';
import {
  type Candidate,
  type DependencyCatalog,
  GrowingCatalog,
  formatVersionRange,
  joinKey,
} from './growing-catalog.js';

/** Handling of dependencies of selected bundles that are not selected. */
export type DependencyMode = 'none' | 'report' | 'add';

/** Result of closing the dependencies of a selection. */
export interface Closure {
  /** New selections of the catalogs that bundles were added to. */
  selections: Map<DependencyCatalog, CatalogSelection>;
  /** Messages about added packages: source, and the bundle that needs it. */
  added: string[];
  /** Messages about unmet dependencies. */
  unmet: string[];
}

/** A selected bundle. */
interface SelectedBundle extends Offer {
  source: GrowingCatalog;
  name: string;
  needs: readonly Need[];
  /** Chain of reasons for adding it; empty for a bundle that the configuration selects. */
  because: readonly string[];
}

/** An unmet dependency of bundles of one package. */
interface MissingNeed {
  need: Need;
  bundles: SelectedBundle[];
}

/**
 * Finds unmet dependencies of selected bundles (`olm.package.required`, `olm.gvk.required`, `olm.constraint`) in all
 * catalogs, and with `add` selects bundles that meet them. Order of preference: the same catalog, then the order of the
 * configuration; selected packages; selected channels, then the default channel; bundles nearest to the head. Selected
 * bundles are read one by one, whole catalogs only if mirrored unchanged or a dependency is unmet. Throws errors of
 * selection and of reading catalogs.
 */
export async function closeDependencies(
  config: ImageSetConfiguration,
  selected: readonly DependencyCatalog[],
  mode: DependencyMode,
  options: CancelOptions,
): Promise<Closure> {
  if (mode === 'none') return { selections: new Map(), added: [], unmet: [] };
  const closing = new Closing(config, selected, options);
  return closing.close(mode === 'add');
}

/** Selected bundles, and what is found of their dependencies. */
class Closing {
  readonly #catalogs: readonly GrowingCatalog[];
  readonly #options: CancelOptions;
  readonly #offers = new OfferIndex({ meetsUnclear: false });
  /** Bundles with dependencies; grows with added ones. */
  readonly #queue: SelectedBundle[] = [];
  readonly #added: string[] = [];
  /** By catalog, package and dependency. */
  readonly #missing = new Map<string, MissingNeed>();

  constructor(
    { file }: ImageSetConfiguration,
    selected: readonly DependencyCatalog[],
    options: CancelOptions,
  ) {
    this.#catalogs = selected.map((catalog) => new GrowingCatalog(catalog, file));
    this.#options = options;
  }

  async close(adds: boolean): Promise<Closure> {
    for (const source of this.#catalogs) await this.#readSelection(source);
    await this.#checkQueue(adds);
    const unmet: string[] = [];
    // It may have been added for another bundle since.
    for (const { need, bundles } of this.#missing.values()) {
      for (const part of this.#offers.unmetParts(need))
        unmet.push(await this.#describeMissing(part, bundles));
    }
    const grown = this.#catalogs.filter((source) => source.hasGrown());
    return {
      selections: new Map(grown.map((source) => [source.origin, source.select()])),
      added: this.#added,
      unmet,
    };
  }

  /** Checks dependencies. Named packages come first, as they leave no choice, and may provide APIs. */
  async #checkQueue(adds: boolean): Promise<void> {
    const queue = this.#queue;
    // The queue grows.
    for (let named = 0, others = 0; others < queue.length;) {
      throwIfCancelled(this.#options.signal);
      const namesPackage = named < queue.length;
      const bundle = queue[namesPackage ? named++ : others++] as SelectedBundle;
      for (const need of bundle.needs) {
        if ((need.kind === 'one' && need.package !== undefined) !== namesPackage) continue;
        if (adds) await this.#provide(need, bundle);
        if (!this.#offers.meets(need)) this.#noteMissing(need, bundle);
      }
    }
  }

  #noteMissing(need: Need, bundle: SelectedBundle): void {
    const key = joinKey(bundle.source.name, bundle.package, need.text);
    getOrAdd(this.#missing, key, () => ({ need, bundles: [] })).bundles.push(bundle);
  }

  async #readSelection(source: GrowingCatalog): Promise<void> {
    const { isWhole, facts } = source.origin.selection;
    if (!isWhole) {
      for await (const { bundle, properties } of source.readBundles(facts.bundles, this.#options)) {
        this.#select(source, bundle, properties, []);
      }
      return;
    }
    const needs = new Map<string, Need[]>();
    await source.index(this.#options, (key, matches) => needs.set(key, matches));
    for (const bundle of facts.bundles) {
      const key = joinKey(bundle.package, bundle.name);
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
    const version = readBundleVersion(facts);
    const bundle = { source, package: packageName, name, version, apis, needs, because };
    this.#offers.add(bundle);
    if (needs.length > 0) this.#queue.push(bundle);
  }

  /** Adds bundles that meet a dependency, if available. */
  async #provide(need: Need, bundle: SelectedBundle): Promise<void> {
    if (this.#offers.meets(need) || need.kind === 'unclear') return;
    if (need.kind === 'one') {
      await this.#provideSingle(need, bundle);
      return;
    }
    for (const part of need.parts) {
      await this.#provide(part, bundle);
      if (need.kind === 'some' && this.#offers.meets(part)) return;
    }
  }

  async #provideSingle(need: SingleNeed, bundle: SelectedBundle): Promise<void> {
    for await (const candidate of this.#findCandidates(need, bundle)) {
      const { source, package: name, channel } = candidate;
      const wasSelected = source.isSelected(name);
      const grown = source.add(candidate);
      if (grown === undefined) continue;
      const because = shortenReasons([...bundle.because, `${quoteGo(bundle.name)} needs ${need.text}`]);
      const isNewDefault = !wasSelected && grown.defaultChannel !== source.getDefaultChannel(name);
      const content = `package ${quoteGo(name)} ${formatVersionRange(grown.bundles)} in ${channel}`;
      const from = `${isNewDefault ? ', now its default channel,' : ''} from ${source.name}`;
      this.#added.push(`${content}${from}: ${because.join(', and ')}`);
      for await (const item of source.readBundles(grown.bundles, this.#options)) {
        this.#select(source, item.bundle, item.properties, because);
      }
      return;
    }
  }

  /** Yields bundles that meet a dependency, best first. */
  async *#findCandidates(
    need: SingleNeed,
    { source: own }: SelectedBundle,
  ): AsyncGenerator<Candidate & { source: GrowingCatalog }, void> {
    for (const source of [own, ...this.#catalogs.filter((catalog) => catalog !== own)]) {
      await source.index(this.#options);
      for (const candidate of source.findCandidates(need)) yield { ...candidate, source };
    }
  }

  async #describeMissing(need: Need, bundles: readonly SelectedBundle[]): Promise<string> {
    const subject = `${formatNames(bundles)} ${bundles.length === 1 ? 'needs' : 'need'} ${need.text}`;
    if (need.kind === 'unclear') return `${subject}, which opmate does not understand`;
    if (need.kind !== 'one') return `${subject}, of which nothing is selected`;
    for await (const { source, channel, bundle } of this.#findCandidates(
      need,
      bundles[0] as SelectedBundle,
    )) {
      return `${subject}, which is not selected: ${source.name} has ${quoteGo(bundle.name)} in ${channel}`;
    }
    for (const source of this.#catalogs) {
      const versions = need.package === undefined ? undefined : source.findVersions(need.package);
      if (versions !== undefined) return `${subject}, of which ${source.name} has ${versions}`;
    }
    return `${subject}, which no given catalog has`;
  }
}

const maxReasons = 6;

/** Returns the first reason and the last ones. */
function shortenReasons(reasons: readonly string[]): readonly string[] {
  if (reasons.length <= maxReasons) return reasons;
  return [reasons[0] as string, '…', ...reasons.slice(2 - maxReasons)];
}

const maxNamed = 3;

/** Returns `"a.v1", "a.v2" and 3 more`. */
function formatNames(bundles: readonly SelectedBundle[]): string {
  const names = bundles.slice(0, maxNamed).map(({ name }) => quoteGo(name));
  const more = bundles.length - names.length;
  return `${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
