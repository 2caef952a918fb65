import type { Catalog, CatalogImage } from '../../catalog/catalog.js';
import { leaveOut } from '../../catalog/selection/leave-out.js';
import type { CatalogSelection } from '../../catalog/selection/selection.js';
import { ErrorList, combineErrors } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import type { Reference } from '../../core/reference.js';
import type { HelmConfig } from '../helm/helm-config.js';
import type { OpenedCharts } from '../helm/open-charts.js';
import { type OpenReleasesOptions, type OpenedReleases, openReleases } from '../release/open-releases.js';
import { type DependencyMode, closeDependencies } from '../selection/dependencies.js';
import type { RebuildChanges, RebuildSource } from '../selection/rebuilt-catalog.js';
import { type CollectionOptions, ImageCollection, type PlannedChart } from './image-collection.js';
import { type ImageSetConfiguration, type OperatorConfig, getCatalogTarget } from './image-set-config.js';
import type { TargetName } from '../naming/image-name.js';
import { toDigestTag } from '../naming/mirror-target.js';
import type { MirrorPlan } from '../plan/mirror-plan.js';
import { type OnError, type SetImage, toBundleKey } from '../plan/planned-image.js';
import {
  type OpenedCatalog,
  type SelectedCatalog,
  isAboutContent,
  selectCatalogs,
} from './select-catalogs.js';

/** A catalog of a plan. */
export interface PlannedCatalog {
  operator: OperatorConfig;
  /** Source image, by digest. */
  reference: Reference;
  digest: string;
  /** Whole name with tag at the target. */
  destination: string;
  name: TargetName;
  selection: CatalogSelection;
  /** Open until the plan is closed. */
  catalog: Catalog;
  /** Set if a sqlite index is mirrored unchanged. */
  isDatabase: boolean;
  /** Invalid references to remove from `relatedImages` of its bundles. */
  withoutImages: ReadonlySet<string>;
  /** Number of images by package, each counted once. */
  imageCounts: ReadonlyMap<string, number>;
}

/** Selected content that a plan omits, as `onError` says. */
interface SkippedPart {
  /** Omitted bundles, as `package/bundle`. */
  bundles: Set<string>;
  /** References of omitted catalogs, as in the configuration. */
  catalogs: string[];
  /** Messages about changes of catalogs. */
  changes: string[];
}

interface PlanFaults {
  faults: MirrorPlan['faults'][number][];
}

/** The plan of an image set. */
export interface ImageSetPlan extends MirrorPlan<SetImage>, Pick<OpenedReleases, 'graphs' | 'graphImage'> {
  catalogs: PlannedCatalog[];
  releases: OpenedReleases['releases'];
  charts: PlannedChart[];
  /** Messages about content that was added as a dependency. */
  added: string[];
  /** Content that was skipped because of references that no cluster can pull. */
  skipped: SkippedPart;
  /** Closes the catalogs. */
  close(): Promise<void>;
}

/** Options of planning an image set. */
export interface PlanOptions extends CollectionOptions, OpenReleasesOptions {
  /** Handling of missing dependencies; default `none`. */
  dependencies?: DependencyMode | undefined;
  /** Handling of invalid image references in catalogs; default `stop`. */
  onError?: OnError | undefined;
  openCatalog: (reference: Reference) => Promise<OpenedCatalog>;
  openCharts: (helm: HelmConfig) => Promise<OpenedCharts>;
  /** Returns the digest of a filtered catalog, which becomes its tag if it has no other; default that of the source. */
  digestOfRebuilt?: ((source: RebuildSource, changes: RebuildChanges) => Promise<string>) | undefined;
}

/**
 * Plans an image set: reads and filters catalogs, and names every image at source and target. Reads no images except
 * catalogs. Throws OpmateError for invalid selections, charts, releases and image references, and for different images
 * with one name.
 */
export async function planImageSet(
  config: ImageSetConfiguration,
  options: PlanOptions,
): Promise<ImageSetPlan> {
  const sources = new OpenedSources();
  try {
    // After an error, images are collected only to report theirs with it.
    const errors = new ErrorList(options.signal);
    const { selected, ...others } = await sources.open(config, options, errors);
    const isWhole = errors.isEmpty;
    const dependencies = (isWhole ? options.dependencies : undefined) ?? 'none';
    const { selections, added, unmet } = await closeDependencies(config, selected, dependencies, options);
    for (const catalog of selected) catalog.selection = selections.get(catalog) ?? catalog.selection;
    const images = new ImageCollection(config, options);
    const naming = isWhole ? options : { ...options, digestOfRebuilt: undefined };
    const { catalogs, faults, skipped } = await planCatalogs(selected, images, naming, errors);
    errors.throwIfAny();
    const [{ charts }, opened] = await Promise.all([others.charts, others.releases]);
    for (const image of config.additionalImages) images.addAdditional(image, config.file);
    const plannedCharts = images.addCharts(charts);
    const { releases, graphs, graphImage, warnings } = opened;
    images.addReleases(opened, config.releases?.platforms ?? []);
    return {
      catalogs,
      charts: plannedCharts,
      releases,
      graphs,
      graphImage,
      added,
      faults,
      skipped,
      close: () => sources.close(),
      ...images.finish([
        ...config.warnings,
        ...catalogs.flatMap(({ selection }) => selection.warnings),
        ...unmet,
        ...sources.chartWarnings,
        ...warnings,
      ]),
    };
  } catch (error) {
    // A chart that was not rendered whole may be the reason.
    for (const warning of sources.chartWarnings) options.logger?.log('warn', warning);
    await sources.close();
    throw error;
  }
}

interface OpenedContent {
  selected: SelectedCatalog[];
  charts: Promise<OpenedCharts>;
  releases: Promise<OpenedReleases>;
}

/** The catalogs, charts and releases of a plan, until it is closed. */
class OpenedSources {
  readonly chartWarnings: string[] = [];
  private readonly opened: { close(): Promise<void> }[] = [];

  /** Opens all, and selects from the catalogs. Adds errors, which the charts and releases throw when awaited, too. */
  async open(config: ImageSetConfiguration, options: PlanOptions, errors: ErrorList): Promise<OpenedContent> {
    // They come from different servers, and do not depend on each other.
    const selecting = selectCatalogs(config, options, this.opened, errors);
    const others = [options.openCharts(config.helm), openReleases(config.releases, options)] as const;
    const [, charts, releases] = await Promise.allSettled([selecting, ...others]);
    if (charts.status === 'fulfilled') {
      this.opened.push(charts.value);
      this.chartWarnings.push(...charts.value.charts.flatMap(({ needed }) => needed.warnings));
    }
    if (releases.status === 'fulfilled') this.opened.push(releases.value);
    const selected = (await errors.try(() => selecting)) ?? [];
    for (const result of others) await errors.try<unknown>(() => result);
    return { selected, charts: others[0], releases: others[1] };
  }

  async close(): Promise<void> {
    for (const item of this.opened.splice(0)) await item.close();
  }
}

/** Plans the selected catalogs; errors of their contents are added. */
async function planCatalogs(
  selected: readonly SelectedCatalog[],
  images: ImageCollection,
  options: PlanOptions,
  errors: ErrorList,
): Promise<Pick<ImageSetPlan, 'catalogs' | 'faults' | 'skipped'>> {
  const catalogs: PlannedCatalog[] = [];
  const faults: PlanFaults['faults'] = [];
  const skipped: SkippedPart = { bundles: new Set(), catalogs: [], changes: [] };
  for (const catalog of selected) {
    const planning = () => planCatalog(catalog, images, options, { ...skipped, faults });
    const planned = await errors.try(planning, isAboutContent);
    if (planned !== undefined) catalogs.push(planned);
  }
  return { catalogs, faults, skipped };
}

/** Plans a catalog and its images; undefined if nothing of it is left without invalid references. */
async function planCatalog(
  opened: SelectedCatalog,
  images: ImageCollection,
  options: PlanOptions,
  skipped: SkippedPart & PlanFaults,
): Promise<PlannedCatalog | undefined> {
  const { operator, catalog, digest } = opened;
  const { platforms } = operator;
  const read = await images.readImages(operator.catalog, opened.selection, catalog);
  const valid = skipInvalid(opened, read, options, skipped);
  if (valid === undefined) return undefined;
  const { selection, withoutImages } = valid;
  const destinations = new Map<string, Set<string>>();
  for (const image of valid.images) {
    const planned = images.addBundleImage(image, platforms);
    if (planned !== undefined)
      getOrAdd(destinations, image.package, () => new Set()).add(planned.destination);
  }
  if (valid.images.length === 0 && read.blocked.length === 0) {
    const hint = 'remove it from the configuration, or copy only the catalog: no bundle of it is in an image';
    throw new OpmateError('INVALID', 'names no image', { subject: operator.catalog, hint });
  }
  const reference = { ...operator.reference, digest };
  const { repository, tag } = getCatalogTarget(operator);
  let targetDigest = digest;
  if (tag === undefined && !selection.isWhole && options.digestOfRebuilt !== undefined) {
    const source = { catalog, facts: selection.facts, reference, digest };
    targetDigest = await options.digestOfRebuilt(source, {
      platforms: platforms.length > 0 ? platforms : options.platforms,
      withoutImages,
    });
  }
  const name = { repository, tag: tag ?? toDigestTag(targetDigest) };
  const { destination } = images.addImage('catalog', reference, name, platforms);
  const isDatabase = selection.isWhole && catalog.storedImages !== undefined;
  const names = { operator, reference, digest, destination, name };
  const imageCounts = new Map([...destinations].map(([item, { size }]) => [item, size]));
  return { ...names, selection, catalog, isDatabase, withoutImages, imageCounts };
}

/** Returns the part of a catalog without invalid references; undefined for none. Throws OpmateError unless they may be skipped. */
function skipInvalid(
  { operator, selection }: SelectedCatalog,
  { valid, invalid, blocked }: Awaited<ReturnType<ImageCollection['readImages']>>,
  { onError = 'stop' }: PlanOptions,
  skipped: SkippedPart & PlanFaults,
): (Pick<PlannedCatalog, 'selection' | 'withoutImages'> & { images: CatalogImage[] }) | undefined {
  const blockedTexts = blocked.filter(({ kind }) => kind === 'related').map(({ image }) => image);
  // An unchanged catalog keeps blocked references, valid or not.
  if (invalid.length === 0)
    return { selection, images: valid, withoutImages: new Set(selection.isWhole ? [] : blockedTexts) };
  if (onError === 'stop') throw combineErrors(invalid.map(({ error }) => error));
  skipped.faults.push(...invalid.map(({ image, error }) => ({ name: image.image, error })));
  const isKept = ({ kind }: CatalogImage): boolean => onError === 'skip-image' && kind === 'related';
  const bundles = new Set(
    invalid.filter(({ image }) => !isKept(image)).map(({ image }) => toBundleKey(image)),
  );
  for (const bundle of bundles) skipped.bundles.add(bundle);
  try {
    const left = leaveOut(selection, bundles, operator.catalog);
    skipped.changes.push(...left.changes.map((change) => `${operator.catalog}: ${change}`));
    const removed = invalid.filter(({ image }) => isKept(image)).map(({ image }) => image.image);
    return {
      selection: { ...left.selection, isWhole: false },
      images: valid.filter((image) => !bundles.has(toBundleKey(image))),
      withoutImages: new Set([...blockedTexts, ...removed]),
    };
  } catch (error) {
    if (!(error instanceof OpmateError) || error.code !== 'INVALID') throw error;
    skipped.faults.push({ name: operator.catalog, error });
    skipped.catalogs.push(operator.catalog);
    return undefined;
  }
}
