import { OpmateError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { TagOwners, findSharedRepositories } from './collisions.js';
import {
  type ImageName,
  type TypedImageReference,
  getCanonicalRepository,
  getDestinationPath,
  getDestinationTag,
  formatImageName,
  formatTypedReference,
  parseImageName,
  getPath,
  getRepository,
  withDockerDefaults,
} from './image-names.js';

/** An image to be mirrored, and where to. */
export interface MappedImage {
  source: TypedImageReference;
  /** Always with a tag; with the digest of the source where that is known. */
  target: TypedImageReference;
  /** What clusters call the image; left out for a catalog in files, which has no such name. */
  origin: ImageName | undefined;
  /** Whether this is the catalog itself. */
  isCatalog: boolean;
}

export interface MappingOptions {
  /** The catalog, with a tag or digest. */
  source: TypedImageReference;
  /** Registry and path, or directory, that everything is put below. */
  destination: TypedImageReference;
  /** Most components of a path in a registry; 0 for any number. Not counted in `file://`. */
  maxComponents: number;
  /** Omits the notes about source repositories that share a target repository. */
  mergeRepositories?: boolean | undefined;
}

export interface Mapping {
  /** Sorted by the text of their lines; the catalog among them. */
  images: MappedImage[];
  /** References that are none, one error each. */
  faults: OpmateError[];
  /** Images that are named twice, and source repositories that share a target repository. */
  notes: string[];
}

/**
 * Maps each image of a catalog to its place at the mirror. Source repositories may share a target repository. Throws
 * OpmateError INVALID, with one error each as its cause, for tags that would name two images.
 */
export function mapImages(images: Iterable<string>, options: MappingOptions): Mapping {
  const { source, destination } = options;
  const faults: OpmateError[] = [];
  const mapped = new Map<string, MappedImage>();
  const add = (image: MappedImage): void => {
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
      faults.push(error);
      continue;
    }
    const target: TypedImageReference = {
      scheme: destination.scheme,
      name: mountBelow(name, getBasePath(options), options),
    };
    const origin = withDockerDefaults(name);
    const from = source.scheme === 'file' ? below(source, name) : origin;
    add({ source: { scheme: source.scheme, name: from }, target, origin, isCatalog: false });
  }
  const notes: string[] = [];
  const kept = withoutTwins([...mapped.values()], notes);
  requireOneImagePerTag(kept);
  if (options.mergeRepositories !== true) notes.push(...findSharedRepositories(kept.map(getRepositories)));
  kept.sort((a, b) => compareBytes(formatLine(a), formatLine(b)));
  return { images: kept, faults: faults.sort((a, b) => compareBytes(a.message, b.message)), notes };
}

/** One line of a mapping file, without its end. The target is told by tag. */
export function formatLine({ source, target }: MappedImage): string {
  return `${formatTypedReference(source)}=${formatTarget(target)}`;
}

/** A target by its tag, whatever its digest. */
export function formatTarget(target: TypedImageReference): string {
  return formatTypedReference({ ...target, name: { ...target.name, digest: undefined } });
}

/** In files everything of one catalog lies below the catalog. */
function getBasePath({ source, destination }: MappingOptions): string {
  const base = getPath(destination.name);
  return destination.scheme === 'file' ? `${base}/${getPath(source.name)}` : base;
}

function mapCatalog(options: MappingOptions): MappedImage {
  const { source, destination } = options;
  const { name } = source;
  const from = name.tag === undefined && name.digest === undefined ? { ...name, tag: 'latest' } : name;
  const target = mountBelow(name, getPath(destination.name), options);
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
  const path = getDestinationPath(base, name, isFile ? 0 : maxComponents);
  const registry = isFile ? '' : destination.name.registry;
  // No component is a namespace of its own once they are joined; printing and comparing need none.
  return { registry, namespace: '', name: path, tag: getDestinationTag(name), digest: name.digest };
}

/** Where an image lies in the files that its catalog lies in: under the tag that it was given there. */
function below(source: TypedImageReference, name: ImageName): ImageName {
  const path = getDestinationPath(getPath(source.name), name, 0);
  const { digest } = name;
  const tag = digest === undefined ? getDestinationTag(name) : name.tag;
  return { registry: '', namespace: '', name: path, tag, digest };
}

/**
 * An image that a catalog names both by its tag and by tag and digest is one: the digest says which.
 */
function withoutTwins(images: readonly MappedImage[], notes: string[]): MappedImage[] {
  const byTarget = new Map<string, MappedImage>();
  const kept: MappedImage[] = [];
  for (const image of [...images].sort((a, b) => getRank(a) - getRank(b))) {
    const target = formatTarget(image.target);
    const known = byTarget.get(target);
    const isTwin =
      known?.source.name.digest !== undefined &&
      image.source.name.digest === undefined &&
      getCanonicalRepository(known.source.name) === getCanonicalRepository(image.source.name);
    if (isTwin) {
      const [by, pinned] = [formatImageName(image.source.name), known.source.name.digest];
      notes.push(`${by}: mirrored as ${pinned}, which the catalog names for this tag as well`);
      continue;
    }
    byTarget.set(target, image);
    kept.push(image);
  }
  return kept;
}

const getRank = ({ source }: MappedImage): number => (source.name.digest === undefined ? 1 : 0);

function requireOneImagePerTag(images: readonly MappedImage[]): void {
  const owners = new TagOwners<MappedImage>();
  let isFolded = false;
  for (const image of [...images].sort((a, b) => compareBytes(formatLine(a), formatLine(b)))) {
    const target = formatTarget(image.target);
    const owner = owners.claim(target, image);
    if (isSameImage(owner, image)) continue;
    owners.refuse(target, formatTypedReference(owner.source), formatTypedReference(image.source));
    isFolded ||= getPath(getNames(owner)) !== getPath(getNames(image));
  }
  owners.throwIfRefused(
    isFolded ? 'use a larger --max-components' : 'use custom mappings with opmate mirror -f',
  );
}

function getRepositories(image: MappedImage): { source: string; target: string } {
  return { source: getCanonicalRepository(getNames(image)), target: getRepository(image.target.name) };
}

/** The name by which an image is told from others. */
const getNames = ({ origin, source }: MappedImage): ImageName => origin ?? source.name;

function isSameImage(a: MappedImage, b: MappedImage): boolean {
  const [name, other] = [getNames(a), getNames(b)];
  if (name.digest !== undefined || other.digest !== undefined) return name.digest === other.digest;
  return getCanonicalRepository(name) === getCanonicalRepository(other) && name.tag === other.tag;
}
