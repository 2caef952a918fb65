import { OpmateError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { findSharedRepositories, requireOneImagePerTag } from '../plan/collisions.js';
import {
  type ImageName,
  formatCanonicalRepository,
  formatImageName,
  formatRepository,
  getDestinationTag,
  joinPath,
  parseImageName,
  toReference,
  withDockerDefaults,
} from '../naming/image-name.js';
import {
  type ImageLocation,
  formatImageLocation,
  locateImage,
  locateTarget,
} from '../naming/image-location.js';
import type { MirrorPlan } from '../plan/mirror-plan.js';
import type { PlannedImage } from '../plan/planned-image.js';

/** Names of an image while the targets are chosen. */
interface MappedName {
  source: ImageLocation;
  /** Always has a tag, and the digest of the source if known. */
  target: ImageLocation;
  /** Name of the image in clusters; undefined for a catalog in `file://`. */
  origin: ImageName | undefined;
  isCatalog: boolean;
}

/** Options of mapping the images of a catalog. */
export interface MappingOptions {
  /** The catalog, with a tag or digest. */
  source: ImageLocation;
  /** Registry and path, or directory, of the mirror. */
  destination: ImageLocation;
  /** Roots of sources and targets in `file://`. */
  roots: { from: string; to: string };
  /** Maximum path components in a registry; 0 is unlimited. Not applied to `file://`. */
  maxComponents: number;
  /** Omits the notes about source repositories that share a target repository. */
  mergeRepositories?: boolean | undefined;
}

/**
 * Maps a catalog and its images to their targets; source repositories may share a target repository. Throws OpmateError
 * INVALID, with one error each as its cause, for tags of two images.
 */
export function mapImages(images: Iterable<string>, options: MappingOptions): MirrorPlan {
  const { source, destination, roots } = options;
  const faults: { name: string; error: OpmateError }[] = [];
  const mapped = new Map<string, MappedName>();
  const add = (image: MappedName): void => {
    const line = formatLine(image);
    if (!mapped.has(line)) mapped.set(line, image);
  };
  add(mapCatalog(options));
  for (const text of new Set(images)) {
    let name: ImageName;
    try {
      name = parseImageName(text);
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      faults.push({ name: text, error });
      continue;
    }
    const target: ImageLocation = {
      scheme: destination.scheme,
      name: mountBelow(name, getBasePath(options), options),
    };
    const origin = withDockerDefaults(name);
    const from = source.scheme === 'file' ? getFileSource(source, name) : origin;
    add({ source: { scheme: source.scheme, name: from }, target, origin, isCatalog: false });
  }
  const warnings: string[] = [];
  const kept = withoutTwins([...mapped.values()], warnings);
  kept.sort((a, b) => compareBytes(formatLine(a), formatLine(b)));
  requireOneImagePerTag(kept, {
    getTag: ({ target }) => formatTarget(target),
    getName: (image) => formatImageLocation(image.source),
    isSame: isSameImage,
    getHint: (collisions) =>
      collisions.some(([a, b]) => getOrigin(a).repository !== getOrigin(b).repository)
        ? 'use a larger options.maxComponents'
        : 'use custom mappings with api.mirrorMappings',
  });
  if (options.mergeRepositories !== true) warnings.push(...findSharedRepositories(kept.map(getRepositories)));
  faults.sort((a, b) => compareBytes(a.error.message, b.error.message));
  const named = kept.map((name) => toPlannedImage(name, roots));
  return { images: named, catalogs: [], faults, blocked: [], warnings };
}

function toPlannedImage(
  { source, target, origin, isCatalog }: MappedName,
  roots: MappingOptions['roots'],
): PlannedImage {
  const from = locateImage(source, roots.from);
  const text = formatImageLocation(source);
  return {
    kind: isCatalog ? 'catalog' : 'related',
    reference: origin === undefined ? from : toReference(origin),
    from,
    source: text,
    title: text,
    target: locateTarget(target, roots.to),
    destination: formatTarget(target),
    bundles: [],
  };
}

function formatLine({ source, target }: MappedName): string {
  return `${formatImageLocation(source)}=${formatTarget(target)}`;
}

/** Formats a target by its tag, without its digest. */
function formatTarget(target: ImageLocation): string {
  return formatImageLocation({ ...target, name: { ...target.name, digest: undefined } });
}

/** Returns the path of the mirror; in `file://` images are below their catalog. */
function getBasePath({ source, destination }: MappingOptions): string {
  const base = destination.name.repository;
  return destination.scheme === 'file' ? `${base}/${source.name.repository}` : base;
}

function mapCatalog(options: MappingOptions): MappedName {
  const { source, destination } = options;
  const { name } = source;
  const from = name.tag === undefined && name.digest === undefined ? { ...name, tag: 'latest' } : name;
  const target = mountBelow(name, destination.name.repository, options);
  return {
    source: { ...source, name: from },
    target: { scheme: destination.scheme, name: target },
    origin: source.scheme === 'file' ? undefined : withDockerDefaults(from),
    isCatalog: true,
  };
}

function mountBelow(
  name: ImageName,
  base: string,
  { destination, maxComponents }: MappingOptions,
): ImageName {
  const isFile = destination.scheme === 'file';
  const repository = joinPath(base, name.repository, isFile ? undefined : maxComponents || undefined);
  const registry = isFile ? '' : destination.name.registry;
  return { registry, repository, tag: getDestinationTag(name), digest: name.digest };
}

/** Returns the source of an image of a catalog in `file://`: below the catalog, with the tag of the mirror. */
function getFileSource(source: ImageLocation, name: ImageName): ImageName {
  const repository = joinPath(source.name.repository, name.repository);
  const { digest } = name;
  const tag = digest === undefined ? getDestinationTag(name) : name.tag;
  return { registry: '', repository, tag, digest };
}

/** Returns images without those named by a tag that another reference pins to a digest. */
function withoutTwins(images: readonly MappedName[], warnings: string[]): MappedName[] {
  const byTarget = new Map<string, MappedName>();
  const kept: MappedName[] = [];
  for (const image of [...images].sort((a, b) => getRank(a) - getRank(b))) {
    const target = formatTarget(image.target);
    const known = byTarget.get(target);
    const isTwin =
      known?.source.name.digest !== undefined &&
      image.source.name.digest === undefined &&
      formatCanonicalRepository(known.source.name) === formatCanonicalRepository(image.source.name);
    if (isTwin) {
      const [subject, digest] = [formatImageName(image.source.name), known.source.name.digest];
      warnings.push(`${subject}: mirrored as ${digest}, which the catalog names for this tag as well`);
      continue;
    }
    byTarget.set(target, image);
    kept.push(image);
  }
  return kept;
}

const getRank = ({ source }: MappedName): number => (source.name.digest === undefined ? 1 : 0);

function getRepositories(image: MappedName): { source: string; target: string } {
  return { source: formatCanonicalRepository(getOrigin(image)), target: formatRepository(image.target.name) };
}

const getOrigin = ({ origin, source }: MappedName): ImageName => origin ?? source.name;

function isSameImage(a: MappedName, b: MappedName): boolean {
  const [name, other] = [getOrigin(a), getOrigin(b)];
  if (name.digest !== undefined || other.digest !== undefined) return name.digest === other.digest;
  return formatCanonicalRepository(name) === formatCanonicalRepository(other) && name.tag === other.tag;
}
