import type { Catalog, CatalogImage } from '../../catalog/catalog.js';
import type { CatalogSelection } from '../../catalog/selection/selection.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { ErrorList } from '../../core/diagnostics-error.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { compareBytes } from '../../core/order.js';
import {
  type Reference,
  type RegistryReference,
  checkPullSpec,
  formatReference,
  parseReference,
  referenceSubject,
} from '../../core/reference.js';
import { quoteGo } from '../../document/go-json.js';
import { schemas } from '../../model/declarative-config.js';
import type { BundleFacts } from '../../model/facts.js';
import type { OpenedReference } from '../../oci/image/open.js';
import { formatPlatform } from '../../oci/image/platform.js';
import type { Platform } from '../../oci/image/types.js';
import { getImages, readCatalogImages } from '../catalog-images.js';
import { openChartArtifact } from '../helm/chart-artifact.js';
import { nameChart } from '../helm/chart-name.js';
import type { OpenedChart } from '../helm/open-charts.js';
import { findSharedRepositories } from '../plan/collisions.js';
import type { OpenedReleases } from '../release/open-releases.js';
import { createBlockedImages } from './blocked-images.js';
import type { PlatformConfig } from './config-fields.js';
import type { AdditionalImageConfig, ImageSetConfiguration } from './image-set-config.js';
import { type TargetName, formatRepository } from '../naming/image-name.js';
import {
  type MirrorTarget,
  formatSource,
  getDestination,
  nameBelow,
  pathBelow,
  targetReference,
} from '../naming/mirror-target.js';
import type { MirrorPlan } from '../plan/mirror-plan.js';
import { type SetImage, releaseRepositories } from '../plan/planned-image.js';

/** Options of naming the images of a set. */
export interface CollectionOptions extends CancelOptions {
  target: MirrorTarget;
  /** Platforms of images that the configuration does not limit; default all. */
  platforms?: readonly Platform[] | undefined;
  /** Mirrors chart artifacts too; default their images only. */
  withCharts?: boolean | undefined;
  logger?: Logger | undefined;
}

/** A chart with the name of its artifact below the target. */
export interface PlannedChart {
  chart: OpenedChart;
  name: TargetName;
}

/** The images of selected bundles. */
interface SelectedImages {
  valid: CatalogImage[];
  invalid: { image: CatalogImage; error: OpmateError }[];
  /** Invalid references that `blockedImages` excludes. */
  blocked: CatalogImage[];
}

/** The images of a plan, by source, then destination. */
type CollectedImages = { images: SetImage[] } & Pick<MirrorPlan, 'blocked' | 'warnings'>;

/** Collects the images of a plan, each once. */
export class ImageCollection {
  private readonly options: CollectionOptions;
  private readonly collected = new Map<string, SetImage>();
  /** Matching patterns by source. */
  private readonly blocked = new Map<string, string>();
  private readonly findBlocking: ReturnType<typeof createBlockedImages>;

  constructor({ blockedImages }: Pick<ImageSetConfiguration, 'blockedImages'>, options: CollectionOptions) {
    this.options = options;
    this.findBlocking = createBlockedImages(blockedImages);
  }

  /** Reads the images of selected bundles; a reference that no cluster can pull is invalid unless it is blocked. */
  async readImages(label: string, selection: CatalogSelection, catalog: Catalog): Promise<SelectedImages> {
    const images: SelectedImages = { valid: [], invalid: [], blocked: [] };
    const sort = (image: CatalogImage): void => {
      const problem = checkPullSpec(image.image) ?? findMissingVersion(image.image);
      if (problem === undefined) images.valid.push(image);
      else if (this.findBlocking([image.image]) !== undefined) images.blocked.push(image);
      else images.invalid.push({ image, error: createReferenceError(label, image, problem) });
    };
    if (selection.isWhole) {
      for await (const image of readCatalogImages(catalog, this.options)) sort(image);
    } else {
      for (const bundle of selection.facts.bundles) {
        throwIfCancelled(this.options.signal);
        for (const image of await readBundleImages(catalog, bundle)) sort(image);
      }
    }
    return images;
  }

  /** Adds an image of a catalog, whose reference is valid; returns undefined for a blocked one. */
  addBundleImage(
    { image, kind, package: packageName, bundle }: CatalogImage,
    platforms: readonly PlatformConfig[],
  ): SetImage | undefined {
    const reference = parseReference(image);
    const planned = this.addUnlessBlocked(kind, reference, nameBelow(reference), platforms);
    planned?.bundles.push({ package: packageName, bundle });
    return planned;
  }

  addAdditional(
    { reference, targetRepo, targetTag, platforms, place: { line } }: AdditionalImageConfig,
    file: string,
  ): void {
    const name = nameBelow(reference, { repository: targetRepo, tag: targetTag });
    const image = this.addUnlessBlocked('additional', reference, name, platforms);
    if (image === undefined) return;
    image.place ??= { file, line };
    image.isRequested = true;
  }

  /** Adds the images of charts, and their artifacts with `withCharts`. Throws OpmateError. */
  addCharts(charts: readonly OpenedChart[]): PlannedChart[] {
    const digests = new Map<string, string>();
    return charts.map((chart) => {
      const { config, packed, needed } = chart;
      for (const { text } of needed.images) {
        const reference = parseReference(text);
        const image = this.addUnlessBlocked('helm', reference, nameBelow(reference), config.platforms);
        if (image !== undefined) image.isRequested = true;
      }
      const name = nameChart(chart, digests);
      if (this.options.withCharts === true) {
        this.addBuilt('chart', name, () => Promise.resolve(openChartArtifact(packed)));
      }
      return { chart, name };
    });
  }

  /** Adds release images and their components with the names that clusters expect, and the graph image. */
  addReleases({ releases, graphImage }: OpenedReleases, platforms: readonly PlatformConfig[]): void {
    for (const { image, tag, components, contents } of releases) {
      for (const { name, image: component } of components) {
        const target = { repository: releaseRepositories.component, tag: `${tag}-${name}` };
        this.addUnlessBlocked('component', component, target, platforms);
      }
      const target = { repository: releaseRepositories.release, tag };
      const planned = this.addUnlessBlocked('release', image, target, platforms);
      if (planned !== undefined) planned.contents = contents;
    }
    if (graphImage === undefined) return;
    const target = { repository: releaseRepositories.graph, tag: 'latest' };
    this.addBuilt('graph', target, () => graphImage.open());
  }

  private addBuilt(kind: 'chart' | 'graph', name: TargetName, open: () => Promise<OpenedReference>): void {
    const { repository: path, tag } = name;
    this.addImage(kind, { transport: 'oci', text: `oci:${path}:${tag}`, path, tag }, name, []).open = open;
  }

  private addUnlessBlocked(
    kind: SetImage['kind'],
    reference: Reference,
    name: TargetName,
    platforms: readonly PlatformConfig[],
  ): SetImage | undefined {
    const pattern = this.findBlocking([formatReference(reference), this.locate(name).text]);
    if (pattern === undefined) return this.addImage(kind, reference, name, platforms);
    this.blocked.set(formatSource(reference), pattern);
    return undefined;
  }

  private locate({ repository, tag }: TargetName): RegistryReference {
    return targetReference(this.options.target, pathBelow(this.options.target, repository), tag);
  }

  /** Adds an image, which `blockedImages` does not apply to. */
  addImage(
    kind: SetImage['kind'],
    reference: Reference,
    name: TargetName,
    configured: readonly PlatformConfig[],
  ): SetImage {
    const platforms = configured.length > 0 ? configured : this.options.platforms;
    const source = formatSource(reference);
    const location = this.locate(name);
    const destination = location.text;
    const key = `${source}=${destination}`;
    const known = this.collected.get(key);
    if (known !== undefined) {
      // A bundle that another bundle relates to is still a bundle.
      if (kind === 'bundle' && known.kind === 'related') known.kind = kind;
      if (kind !== 'chart' && known.kind === 'helm') known.kind = kind;
      known.platforms = joinPlatforms(known.platforms, platforms);
      known.texts.add(reference.text);
      return known;
    }
    const image: SetImage = {
      kind,
      reference,
      source,
      title: kind === 'catalog' ? reference.text : formatReference(reference),
      name,
      target: location,
      destination,
      platforms,
      bundles: [],
      texts: new Set([reference.text]),
    };
    this.collected.set(key, image);
    return image;
  }

  /** Returns the images of the plan. Throws OpmateError with every name of two different images. */
  finish(warnings: readonly string[]): CollectedImages {
    const images = [...this.collected.values()].sort(
      (a, b) => compareBytes(a.source, b.source) || compareBytes(a.destination, b.destination),
    );
    const { kept, warnings: ofTwins } = mergeTwins(images);
    const blocked = [...this.blocked].map(([source, pattern]) => ({ source, pattern }));
    const shared = findSharedRepositories(images.flatMap((image) => this.getRepositories(image)));
    return {
      images: kept,
      blocked: blocked.sort((a, b) => compareBytes(a.source, b.source)),
      warnings: [...warnings, ...ofTwins, ...shared],
    };
  }

  /** Returns source and target repository, unless the configuration sets the target. */
  private getRepositories({
    reference,
    name,
    target: { repository },
  }: SetImage): { source: string; target: string }[] {
    if (reference.transport !== 'docker' || reference.repository !== name.repository) return [];
    return [{ source: formatRepository(reference), target: getDestination(this.options.target, repository) }];
  }
}

/** Returns images without those that have the same name and content as another. Throws OpmateError for other equal names. */
function mergeTwins(images: readonly SetImage[]): { kept: SetImage[]; warnings: string[] } {
  const errors = new ErrorList();
  const warnings: string[] = [];
  const byDestination = new Map<string, SetImage>();
  const merged = new Set<SetImage>();
  for (const image of images) {
    const { destination } = image;
    const other = byDestination.get(destination);
    const kept = other === undefined ? image : selectTwin(image, other);
    if (kept === undefined) {
      const problem = `${destination}: same target for ${other?.source} and ${image.source}`;
      const hint = 'exclude one of them with blockedImages, or set its targetRepo or targetTag';
      errors.add(new OpmateError('INVALID', problem, { hint }));
      continue;
    }
    byDestination.set(destination, kept);
    if (other === undefined) continue;
    const twin = kept === image ? other : image;
    mergeInto(kept, twin);
    merged.add(twin);
    if (twin.reference.digest === undefined)
      warnings.push(
        `${destination}: ${kept.source} is taken; the catalog names the same tag without digest too`,
      );
  }
  errors.throwIfAny();
  return { kept: images.filter((image) => !merged.has(image)), warnings };
}

function findMissingVersion(text: string): string | undefined {
  const { tag, digest } = parseReference(text);
  return tag === undefined && digest === undefined ? 'missing tag or digest' : undefined;
}

/** Returns the error for a reference of a bundle, which is never a path. */
function createReferenceError(label: string, image: CatalogImage, problem: string): OpmateError {
  const bundle = `package ${quoteGo(image.package)}, bundle ${quoteGo(image.bundle)}`;
  const field = image.field === undefined ? '' : `${image.field}: `;
  return new OpmateError('INVALID', `${field}${referenceSubject(image.image)}: ${problem}`, {
    subject: `${label}: ${bundle}`,
    hint: 'exclude it with blockedImages, or skip it with mirror.onError skip-bundle or skip-image',
  });
}

async function readBundleImages(catalog: Catalog, bundle: BundleFacts): Promise<CatalogImage[]> {
  if (bundle.origin === undefined) return [];
  const { package: packageName, name, origin } = bundle;
  const value = await catalog.read(origin);
  return getImages({ schema: schemas.bundle, package: packageName, name, value, origin });
}

/** Returns the image to keep of two with one destination; undefined if they may differ. */
function selectTwin(image: SetImage, other: SetImage): SetImage | undefined {
  if (!isOperand(image) || !isOperand(other)) return undefined;
  const [digest, otherDigest] = [image.reference.digest, other.reference.digest];
  if (digest !== undefined && digest === otherDigest) return other;
  // One tag, pinned by one of both.
  if ((digest === undefined) === (otherDigest === undefined) || getTag(image) !== getTag(other))
    return undefined;
  return digest === undefined ? other : image;
}

function isOperand({ kind }: SetImage): boolean {
  return kind !== 'catalog' && kind !== 'chart' && kind !== 'graph';
}

function getTag({ reference }: SetImage): string {
  return reference.transport === 'docker'
    ? `${reference.registry}/${reference.repository}:${reference.tag ?? ''}`
    : `${reference.transport}:${reference.path}`;
}

function mergeInto(kept: SetImage, twin: SetImage): void {
  kept.bundles.push(...twin.bundles);
  kept.platforms = joinPlatforms(kept.platforms, twin.platforms);
  for (const text of twin.texts) kept.texts.add(text);
  if (twin.reference.digest !== undefined) kept.aliases = [...(kept.aliases ?? []), twin.reference];
}

/** Returns the platforms of two users of an image; undefined for all. */
function joinPlatforms(
  a: readonly Platform[] | undefined,
  b: readonly Platform[] | undefined,
): readonly Platform[] | undefined {
  if (a === undefined || b === undefined) return undefined;
  return [...new Map([...a, ...b].map((platform) => [formatPlatform(platform), platform])).values()];
}
