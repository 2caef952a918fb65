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
  type GrowingCatalog,
  createGrowingCatalog,
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
  const catalogs = selected.map((catalog) => createGrowingCatalog(catalog, config.file));
  const offers = new OfferIndex({ meetsUnclear: false });
  const queue: SelectedBundle[] = [];
  const added: string[] = [];
  for (const source of catalogs) await readSelection(source);
  const missing = new Map<string, MissingNeed>();
  const check = async (bundle: SelectedBundle, need: Need): Promise<void> => {
    if (mode === 'add') await provide(need, bundle);
    if (offers.meets(need)) return;
    const key = joinKey(bundle.source.name, bundle.package, need.text);
    getOrAdd(missing, key, () => ({ need, bundles: [] })).bundles.push(bundle);
  };
  // The queue grows. Named packages come first, as they leave no choice, and may provide APIs.
  for (let named = 0, others = 0; others < queue.length;) {
    throwIfCancelled(options.signal);
    const namesPackage = named < queue.length;
    const bundle = queue[namesPackage ? named++ : others++] as SelectedBundle;
    for (const need of bundle.needs) {
      if ((need.kind === 'one' && need.package !== undefined) === namesPackage) await check(bundle, need);
    }
  }
  const unmet: string[] = [];
  // It may have been added for another bundle since.
  for (const { need, bundles } of missing.values()) {
    for (const part of offers.unmetParts(need)) unmet.push(await describeMissing(part, bundles));
  }
  const grown = catalogs.filter((source) => source.hasGrown());
  return {
    selections: new Map(grown.map((source) => [source.origin, source.select()])),
    added,
    unmet,
  };

  async function readSelection(source: GrowingCatalog): Promise<void> {
    const { isWhole, facts } = source.origin.selection;
    if (!isWhole) {
      for await (const { bundle, properties } of source.readBundles(facts.bundles, options)) {
        select(source, bundle, properties, []);
      }
      return;
    }
    const needs = new Map<string, Need[]>();
    await source.index(options, (key, matches) => needs.set(key, matches));
    for (const bundle of facts.bundles) {
      const key = joinKey(bundle.package, bundle.name);
      select(source, bundle, { apis: source.getApis(key), needs: needs.get(key) ?? [] }, []);
    }
  }

  function select(
    source: GrowingCatalog,
    facts: BundleFacts,
    { apis, needs }: { apis: readonly string[]; needs: readonly Need[] },
    because: readonly string[],
  ): void {
    const { package: packageName, name } = facts;
    const version = readBundleVersion(facts);
    const bundle = { source, package: packageName, name, version, apis, needs, because };
    offers.add(bundle);
    if (needs.length > 0) queue.push(bundle);
  }

  /** Adds bundles that meet a dependency, if available. */
  async function provide(need: Need, bundle: SelectedBundle): Promise<void> {
    if (offers.meets(need) || need.kind === 'unclear') return;
    if (need.kind === 'one') {
      await provideSingle(need, bundle);
      return;
    }
    for (const part of need.parts) {
      await provide(part, bundle);
      if (need.kind === 'some' && offers.meets(part)) return;
    }
  }

  async function provideSingle(need: SingleNeed, bundle: SelectedBundle): Promise<void> {
    for await (const candidate of findCandidates(need, bundle)) {
      const { source, package: name, channel } = candidate;
      const wasSelected = source.isSelected(name);
      const grown = source.add(candidate);
      if (grown === undefined) continue;
      const because = shortenReasons([...bundle.because, `${quoteGo(bundle.name)} needs ${need.text}`]);
      const isNewDefault = !wasSelected && grown.defaultChannel !== source.getDefaultChannel(name);
      const content = `package ${quoteGo(name)} ${formatVersionRange(grown.bundles)} in ${channel}`;
      const from = `${isNewDefault ? ', now its default channel,' : ''} from ${source.name}`;
      added.push(`${content}${from}: ${because.join(', and ')}`);
      for await (const item of source.readBundles(grown.bundles, options)) {
        select(source, item.bundle, item.properties, because);
      }
      return;
    }
  }

  /** Yields bundles that meet a dependency, best first. */
  async function* findCandidates(
    need: SingleNeed,
    { source: own }: SelectedBundle,
  ): AsyncGenerator<Candidate & { source: GrowingCatalog }, void> {
    for (const source of [own, ...catalogs.filter((catalog) => catalog !== own)]) {
      await source.index(options);
      for (const candidate of source.findCandidates(need)) yield { ...candidate, source };
    }
  }

  async function describeMissing(need: Need, bundles: readonly SelectedBundle[]): Promise<string> {
    const subject = `${formatNames(bundles)} ${bundles.length === 1 ? 'needs' : 'need'} ${need.text}`;
    if (need.kind === 'unclear') return `${subject}, which opmate does not understand`;
    if (need.kind !== 'one') return `${subject}, of which nothing is selected`;
    for await (const { source, channel, bundle } of findCandidates(need, bundles[0] as SelectedBundle)) {
      return `${subject}, which is not selected: ${source.name} has ${quoteGo(bundle.name)} in ${channel}`;
    }
    for (const source of catalogs) {
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
