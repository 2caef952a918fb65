import { type Catalog } from '../../catalog/catalog.js';
import { type CancelOptions } from '../../core/concurrency.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { addContext, combineErrors } from '../../core/diagnostics-error.js';
import { quoteGo } from '../../document/go-json.js';
import { type Logger } from '../../core/log.js';
import { compareBytes } from '../../core/order.js';
import { type Reference, formatReference, parseReference } from '../../core/reference.js';
import type { ImageContents } from '../../oci/image/contents.js';
import type { OpenedReference } from '../../oci/image/open.js';
import { formatPlatform } from '../../oci/image/platform.js';
import type { Platform } from '../../oci/image/types.js';
import { schemas } from '../../model/declarative-config.js';
import type { BundleFacts } from '../../model/facts.js';
import { BlockedImages } from './blocked-images.js';
import { openChartArtifact } from '../helm/chart-artifact.js';
import { chartName } from '../helm/chart-name.js';
import type { HelmConfig } from '../helm/helm-config.js';
import type { OpenedChart, OpenedCharts } from '../helm/open-charts.js';
import type { OpenedReleases } from '../release/open-releases.js';
import type { ReleaseConfig } from '../release/release-config.js';
import { type CatalogImage, getImages, readCatalogImages } from '../catalog-images.js';
import { findSharedRepositories } from '../mapping/collisions.js';
import { type DependencyMode, closeDependencies } from '../selection/dependencies.js';
import {
  type AdditionalImageConfig,
  type ImageSetConfiguration,
  type OperatorConfig,
  type PlatformConfig,
  targetOfCatalog,
} from './image-set-config.js';
import {
  type ImageName,
  type MirrorTarget,
  getDestination,
  nameOfImage,
  pathBelow,
  sourceText,
  tagOfDigest,
} from './image-set-names.js';
import {
  type OpenedCatalog,
  type SelectedCatalog,
  isAboutContent,
  selectCatalogs,
} from './select-catalogs.js';
import type { RebuildSource } from '../selection/rebuilt-source.js';
import { type CatalogSelection } from '../../catalog/selection/selection.js';

/** What an image of a set, a chart or the data of the update service is mirrored as. */
export interface PlannedImage {
  kind:
    'catalog' | 'bundle' | 'related' | 'additional' | 'helm' | 'chart' | 'release' | 'component' | 'graph';
  /** What to pull. */
  reference: Reference;
  /** The same as text, with its transport and by digest where one is known. */
  source: string;
  /** Its name below whatever it is mirrored to. */
  name: ImageName;
  /** Whole name with tag at the target. */
  destination: string;
  /** Path of the repository at the target. */
  repository: string;
  /** The bundles that need it; empty for catalogs and additional images. */
  bundles: { package: string; bundle: string }[];
  /** Of an index only these platforms' images; all where it is left out. */
  platforms: readonly Platform[] | undefined;
  /** How it is written wherever it is named. */
  texts: Set<string>;
  /** Where the configuration names it, for messages. */
  place?: { file: string; line: number } | undefined;
  /** Whether the configuration or a chart names it, whatever bundles do. */
  isAsked?: boolean | undefined;
  /** The same image, by digest, in other source repositories that have the same name at the target. */
  aliases?: readonly Reference[] | undefined;
  /** What it consists of, where that was read already. */
  contents?: ImageContents | undefined;
  /** Opens what exists nowhere but here: a chart as an artifact, the graph image. */
  open?: (() => Promise<OpenedReference>) | undefined;
}

/** What a cluster must know of an image. */
export type MirroredName = Pick<PlannedImage, 'kind' | 'reference' | 'aliases' | 'repository'>;

/** Repositories below a target in which clusters look for releases. (Source: oc-mirror v2.) */
export const releaseRepositories = {
  release: 'openshift/release-images',
  component: 'openshift/release',
  graph: 'openshift/graph-image',
} as const;

/** Whether an image is copied when all others have been: it names what must be there. */
export function isCopiedLast({ kind }: { kind: PlannedImage['kind'] | 'signature' }): boolean {
  return kind === 'catalog' || kind === 'release';
}

/** Whether an image belongs to a release, and installs nothing without the others. */
export function isOfRelease({ kind }: { kind: PlannedImage['kind'] | 'signature' }): boolean {
  return kind === 'release' || kind === 'component' || kind === 'graph';
}

/** An image with its names at source and target. */
export type NamedImage = Pick<
  PlannedImage,
  'kind' | 'reference' | 'aliases' | 'repository' | 'source' | 'destination'
>;

export interface PlannedCatalog {
  operator: OperatorConfig;
  /** The image that the catalog was read from, by digest. */
  reference: Reference;
  digest: string;
  /** Whole name with tag at the target. */
  destination: string;
  name: ImageName;
  selection: CatalogSelection;
  /** Open until the plan is closed. */
  catalog: Catalog;
  /** Whether what is mirrored is an index in a sqlite database. */
  isDatabase: boolean;
}

/** Everything that mirroring an image set means. */
export interface ImageSetPlan extends Pick<OpenedReleases, 'releases' | 'graphs' | 'graphImage'> {
  catalogs: PlannedCatalog[];
  /** By source, then destination. */
  images: PlannedImage[];
  charts: PlannedChart[];
  /** Images that `blockedImages` leaves out, by source, each with the pattern that does. */
  blocked: { source: string; pattern: string }[];
  warnings: string[];
  /** One sentence for each thing that was added because a bundle needs it. */
  added: string[];
  /** Closes the catalogs. */
  close(): Promise<void>;
}

/** A chart of the set, and the name of its artifact below whatever it is mirrored to. */
interface PlannedChart {
  chart: OpenedChart;
  name: ImageName;
}

export interface PlanOptions extends CancelOptions {
  target: MirrorTarget;
  /** What to do about packages that bundles need; `none` unless told. */
  dependencies?: DependencyMode | undefined;
  /** Platforms of images for which the configuration names none. */
  platforms?: readonly Platform[] | undefined;
  logger?: Logger | undefined;
  openCatalog: (reference: Reference) => Promise<OpenedCatalog>;
  openCharts: (helm: HelmConfig) => Promise<OpenedCharts>;
  openReleases: (config: ReleaseConfig | undefined) => Promise<OpenedReleases>;
  /** Mirrors the charts too, as artifacts; else only their images. */
  withCharts?: boolean | undefined;
  /**
   * The digest that a catalog gets of which a part is taken: its tag, where it has no other. Left out where catalogs
   * are of no interest.
   */
  digestOfRebuilt?:
    ((source: RebuildSource, platforms: readonly Platform[] | undefined) => Promise<string>) | undefined;
}

/**
 * Plans an image set: reads each catalog, selects of it, and names every image on both sides. Of images nothing
 * is read but catalogs. Throws OpmateError: what selection throws, what reading charts throws, image references that do not parse, and two
 * different images that would get one name.
 */
export async function planImageSet(
  config: ImageSetConfiguration,
  options: PlanOptions,
): Promise<ImageSetPlan> {
  const opened: OpenedCatalog[] = [];
  let charts: OpenedCharts | undefined;
  let releases: OpenedReleases | undefined;
  const close = async (): Promise<void> => {
    for (const { close: closeOne } of opened.splice(0)) await closeOne();
    await charts?.close();
    charts = undefined;
    await releases?.close();
    releases = undefined;
  };
  try {
    // Catalogs, charts and releases come from different servers, and none needs another.
    const [selecting, openingCharts, openingReleases] = await Promise.allSettled([
      selectCatalogs(config, options, opened),
      options.openCharts(config.helm),
      options.openReleases(config.releases),
    ]);
    if (openingCharts.status === 'fulfilled') charts = openingCharts.value;
    if (openingReleases.status === 'fulfilled') releases = openingReleases.value;
    if (selecting.status === 'rejected') throw selecting.reason;
    const selected = selecting.value;
    const { selections, added, unmet } = await closeDependencies(
      config,
      selected,
      options.dependencies ?? 'none',
      options,
    );
    for (const catalog of selected) catalog.selection = selections.get(catalog) ?? catalog.selection;
    const images = new ImageCollection(config, options);
    const catalogs: PlannedCatalog[] = [];
    const faults: OpmateError[] = [];
    for (const catalog of selected) {
      try {
        catalogs.push(await planCatalog(catalog, images, options));
      } catch (error) {
        if (!(error instanceof OpmateError) || !isAboutContent(error)) throw error;
        faults.push(error);
      }
    }
    if (faults.length > 0) throw combineErrors(faults);
    for (const image of config.additionalImages) images.addAdditional(image, config.file);
    if (openingCharts.status === 'rejected') throw openingCharts.reason;
    const { charts: openedCharts } = openingCharts.value;
    const planned = images.addCharts(openedCharts);
    if (openingReleases.status === 'rejected') throw openingReleases.reason;
    const openedReleases = openingReleases.value;
    images.addReleases(openedReleases, config.releases?.platforms ?? []);
    const warnings = [
      ...config.warnings,
      ...catalogs.flatMap(({ selection }) => selection.warnings),
      ...unmet,
      ...openedCharts.flatMap((chart) => chart.found.warnings),
      ...openedReleases.warnings,
    ];
    const { graphs, graphImage } = openedReleases;
    const parts = { catalogs, charts: planned, releases: openedReleases.releases, graphs, graphImage };
    return { ...parts, ...images.finish(warnings), added, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function planCatalog(
  { operator, catalog, digest, selection }: SelectedCatalog,
  images: ImageCollection,
  options: PlanOptions,
): Promise<PlannedCatalog> {
  const { platforms } = operator;
  if ((await images.addCatalogImages(operator.catalog, selection, catalog, platforms)) === 0) {
    const hint = 'remove it from the configuration, or copy only the catalog: no bundle of it is in an image';
    throw new OpmateError('INVALID', 'names no image', { subject: operator.catalog, hint });
  }
  const reference = { ...operator.reference, digest };
  const { repository, tag } = targetOfCatalog(operator);
  let own = digest;
  if (tag === undefined && !selection.isWhole && options.digestOfRebuilt !== undefined) {
    const source = { catalog, facts: selection.facts, reference, digest };
    own = await options.digestOfRebuilt(source, platforms.length > 0 ? platforms : options.platforms);
  }
  const name = { repository, tag: tag ?? tagOfDigest(own) };
  const { destination } = images.addCatalog(reference, name, platforms);
  const isDatabase = selection.isWhole && catalog.storedImages !== undefined;
  return { operator, reference, digest, destination, name, selection, catalog, isDatabase };
}

/** The images of a plan, each once. */
class ImageCollection {
  readonly #options: PlanOptions;
  readonly #images = new Map<string, PlannedImage>();
  readonly #blocked = new Map<string, string>();
  readonly #patterns: BlockedImages;

  constructor(config: ImageSetConfiguration, options: PlanOptions) {
    this.#patterns = new BlockedImages(config.blockedImages);
    this.#options = options;
  }

  /**
   * Adds what the selected bundles need, and returns how many images they name. Throws OpmateError with every
   * reference that does not parse.
   */
  async addCatalogImages(
    label: string,
    selection: CatalogSelection,
    catalog: Catalog,
    platforms: readonly PlatformConfig[],
  ): Promise<number> {
    const faults: OpmateError[] = [];
    let count = 0;
    const add = (image: CatalogImage): void => {
      count++;
      try {
        this.#addOfBundle(image, platforms);
      } catch (error) {
        if (!(error instanceof OpmateError) || error.code === 'LIMIT') throw error;
        const subject = `${label}: package ${quoteGo(image.package)}, bundle ${quoteGo(image.bundle)}`;
        faults.push(addContext(error, { subject }));
      }
    };
    if (selection.isWhole) {
      for await (const image of readCatalogImages(catalog, this.#options)) add(image);
    } else {
      for (const bundle of selection.facts.bundles) {
        throwIfCancelled(this.#options.signal);
        for (const image of await readBundleImages(catalog, bundle)) add(image);
      }
    }
    if (faults.length > 0) throw combineErrors(faults);
    return count;
  }

  #addOfBundle(
    { image, kind, package: packageName, bundle }: CatalogImage,
    platforms: readonly PlatformConfig[],
  ): void {
    const reference = parseReference(image);
    if (reference.transport !== 'docker') {
      const hint = 'mirror it to a registry: clusters pull from registries only';
      throw new OpmateError('INVALID', `image ${quoteGo(image)}: not in a registry`, { hint });
    }
    const planned = this.#add(kind, reference, nameOfImage(reference), platforms);
    planned?.bundles.push({ package: packageName, bundle });
  }

  /** A catalog is asked for by name, so no pattern blocks it. */
  addCatalog(reference: Reference, name: ImageName, platforms: readonly PlatformConfig[]): PlannedImage {
    return this.#put('catalog', reference, name, platforms);
  }

  addAdditional(
    { reference, targetRepo, targetTag, platforms, place: { line } }: AdditionalImageConfig,
    file: string,
  ): void {
    const name = nameOfImage(reference, { repository: targetRepo, tag: targetTag });
    const image = this.#add('additional', reference, name, platforms);
    if (image === undefined) return;
    image.place ??= { file, line };
    image.isAsked = true;
  }

  /** Adds the images of charts, and the charts where they are mirrored too. Throws OpmateError. */
  addCharts(charts: readonly OpenedChart[]): PlannedChart[] {
    const byName = new Map<string, string>();
    return charts.map((chart) => {
      const { config, packed, found: chartImages } = chart;
      for (const { text } of chartImages.images) {
        const reference = parseReference(text);
        const image = this.#add('helm', reference, nameOfImage(reference), config.platforms);
        if (image !== undefined) image.isAsked = true;
      }
      const name = chartName(chart, byName);
      if (this.#options.withCharts === true) {
        this.#putMade('chart', name, () => Promise.resolve(openChartArtifact(packed)));
      }
      return { chart, name };
    });
  }

  /** Adds release images and their components under the names that clusters expect, and the graph image. */
  addReleases({ releases, graphImage }: OpenedReleases, platforms: readonly PlatformConfig[]): void {
    for (const { image, tag, components, contents } of releases) {
      for (const { name, image: component } of components) {
        const destination = { repository: releaseRepositories.component, tag: `${tag}-${name}` };
        this.#add('component', component, destination, platforms);
      }
      const own = { repository: releaseRepositories.release, tag };
      const planned = this.#add('release', image, own, platforms);
      if (planned !== undefined) planned.contents = contents;
    }
    if (graphImage === undefined) return;
    const name = { repository: releaseRepositories.graph, tag: 'latest' };
    this.#putMade('graph', name, () => graphImage.open());
  }

  /** Adds what exists nowhere but here. */
  #putMade(kind: 'chart' | 'graph', name: ImageName, open: () => Promise<OpenedReference>): void {
    const { repository: path, tag } = name;
    this.#put(kind, { transport: 'oci', text: `oci:${path}:${tag}`, path, tag }, name, []).open = open;
  }

  /** Undefined for an image that is blocked. */
  #add(
    kind: PlannedImage['kind'],
    reference: Reference,
    name: ImageName,
    platforms: readonly PlatformConfig[],
  ): PlannedImage | undefined {
    const source = sourceText(reference);
    const { destination } = this.#place(name);
    const origin = formatReference(reference);
    const pattern = this.#patterns.patternFor([origin, destination]);
    if (pattern === undefined) return this.#put(kind, reference, name, platforms);
    this.#blocked.set(source, pattern);
    return undefined;
  }

  #place({ repository, tag }: ImageName): { repository: string; destination: string } {
    const { target } = this.#options;
    const path = pathBelow(target, repository);
    return { repository: path, destination: getDestination(target, path, tag) };
  }

  #put(
    kind: PlannedImage['kind'],
    reference: Reference,
    name: ImageName,
    wanted: readonly PlatformConfig[],
  ): PlannedImage {
    const platforms = wanted.length > 0 ? wanted : this.#options.platforms;
    const source = sourceText(reference);
    const { repository, destination } = this.#place(name);
    const key = `${source}=${destination}`;
    const known = this.#images.get(key);
    if (known !== undefined) {
      // What a bundle is and another one needs is still a bundle's image.
      if (kind === 'bundle' && known.kind === 'related') known.kind = kind;
      if (kind !== 'chart' && known.kind === 'helm') known.kind = kind;
      known.platforms = joinPlatforms(known.platforms, platforms);
      known.texts.add(reference.text);
      return known;
    }
    const image: PlannedImage = {
      ...{ kind, reference, source, name, destination, repository, platforms },
      bundles: [],
      texts: new Set([reference.text]),
    };
    this.#images.set(key, image);
    return image;
  }

  /** Source and target repository, unless the configuration chose the target. */
  #getMapped({ reference, name, repository }: PlannedImage): { source: string; target: string }[] {
    if (reference.transport !== 'docker' || reference.repository !== name.repository) return [];
    const source = `${reference.registry}/${reference.repository}`;
    return [{ source, target: getDestination(this.#options.target, repository) }];
  }

  /** Throws OpmateError with every name that two different images would get. */
  finish(warnings: string[]): Pick<ImageSetPlan, 'images' | 'blocked' | 'warnings'> {
    const images = [...this.#images.values()].sort(
      (a, b) => compareBytes(a.source, b.source) || compareBytes(a.destination, b.destination),
    );
    const faults: OpmateError[] = [];
    const byDestination = new Map<string, PlannedImage>();
    const dropped = new Set<PlannedImage>();
    for (const image of images) {
      const other = byDestination.get(image.destination);
      if (other === undefined) {
        byDestination.set(image.destination, image);
        continue;
      }
      const kept = isSameDigest(image, other) ? other : findPinned(image, other);
      if (kept === undefined) {
        const problem = `${image.destination}: same target for ${other.source} and ${image.source}`;
        const hint = 'exclude one of them with blockedImages, or set its targetRepo or targetTag';
        faults.push(new OpmateError('INVALID', problem, { hint }));
        continue;
      }
      const left = kept === image ? other : image;
      kept.bundles.push(...left.bundles);
      kept.platforms = joinPlatforms(kept.platforms, left.platforms);
      for (const text of left.texts) kept.texts.add(text);
      byDestination.set(image.destination, kept);
      dropped.add(left);
      if (left.reference.digest !== undefined) kept.aliases = [...(kept.aliases ?? []), left.reference];
      else {
        const what = `${image.destination}: ${kept.source} is taken`;
        warnings.push(`${what}; the catalog names the same tag without digest too`);
      }
    }
    if (faults.length > 0) throw combineErrors(faults);
    const blocked = [...this.#blocked].map(([source, pattern]) => ({ source, pattern }));
    return {
      images: images.filter((image) => !dropped.has(image)),
      blocked: blocked.sort((a, b) => compareBytes(a.source, b.source)),
      warnings: [...warnings, ...findSharedRepositories(images.flatMap((image) => this.#getMapped(image)))],
    };
  }
}

function isSameDigest(a: PlannedImage, b: PlannedImage): boolean {
  const digest = a.reference.digest;
  return isOperand(a) && isOperand(b) && digest !== undefined && digest === b.reference.digest;
}

function isOperand({ kind }: PlannedImage): boolean {
  return kind !== 'catalog' && kind !== 'chart' && kind !== 'graph';
}

/** What two users of an image want of it; undefined for all. */
function joinPlatforms(
  a: readonly Platform[] | undefined,
  b: readonly Platform[] | undefined,
): readonly Platform[] | undefined {
  if (a === undefined || b === undefined) return undefined;
  return [...new Map([...a, ...b].map((platform) => [formatPlatform(platform), platform])).values()];
}

/** Of two references to one tag the one that says by digest what that is; undefined where they may differ. */
function findPinned(a: PlannedImage, b: PlannedImage): PlannedImage | undefined {
  const getName = ({ reference: { transport, ...rest } }: PlannedImage): string =>
    'registry' in rest
      ? `${rest.registry}/${rest.repository}:${rest.tag ?? ''}`
      : `${transport}:${rest.path}`;
  if (!isOperand(a) || !isOperand(b) || getName(a) !== getName(b)) return undefined;
  if ((a.reference.digest === undefined) === (b.reference.digest === undefined)) return undefined;
  return a.reference.digest === undefined ? b : a;
}

async function readBundleImages(catalog: Catalog, bundle: BundleFacts): Promise<CatalogImage[]> {
  if (bundle.origin === undefined) return [];
  const { package: packageName, name, origin } = bundle;
  const value = await catalog.read(origin);
  return getImages({ schema: schemas.bundle, package: packageName, name, value, origin });
}

/** The lines of `mapping.txt`, sorted: `SOURCE=DESTINATION`, both with their transport. */
export function mappingLines(images: readonly NamedImage[], target: MirrorTarget): string[] {
  const scheme = target.registry === '' ? 'file://' : 'docker://';
  return images.map(({ source, destination }) => `${source}=${scheme}${destination}`).sort(compareBytes);
}
