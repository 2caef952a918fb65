import path from 'node:path';
import { OpmateError, invalidValue } from '../../core/errors.js';
import { checkPullSpec } from '../../core/reference.js';
import { encodeRegistryManifests, mapToRegistry } from '../../mirror/mapping/registry-images.js';
import { parseImageLocation } from '../../mirror/naming/image-location.js';
import { type ImageName, parseImageName, withoutNamespace } from '../../mirror/naming/image-name.js';
import { writeOutputFiles } from '../../mirror/output-files.js';
import { type MirrorPlan, formatMappingLines } from '../../mirror/plan/mirror-plan.js';
import type { Session } from '../../source/session.js';
import { type CatalogImageList, type ListImagesOptions, listImages } from './list-images.js';

/** Options of `mapCatalogImages`. */
export interface MapImagesOptions extends ListImagesOptions {
  /** Registry of the mirror, and path below which the repositories are. */
  to: string;
  /** Catalog image in the CatalogSource; default that of the source, if it is an image. */
  catalogImage?: string | undefined;
  /** Tag every digest at the target, as `oc adm catalog mirror` does; default only where several share a repository. */
  tagDigests?: boolean | undefined;
  /** Interval of polls in the CatalogSource, such as `30m`; default none. */
  pollInterval?: string | undefined;
  /** Kind of mirror set; ImageDigestMirrorSet comes with an ImageTagMirrorSet. Default `ImageContentSourcePolicy`. */
  mirrorSet?: 'ImageContentSourcePolicy' | 'ImageDigestMirrorSet' | undefined;
  /** Called with the images of the catalog before they are mapped. */
  onListed?: ((list: CatalogImageList) => void) | undefined;
}

/** Images of a catalog at a mirror. */
export interface MappedImages extends Pick<MirrorPlan, 'images' | 'faults' | 'warnings'> {
  /** `SOURCE=TARGET`, sorted. */
  lines: string[];
  /** Registry of the mirror. */
  registry: string;
  /** Catalog image in the CatalogSource, which is missing without one. */
  catalogImage: string | undefined;
  /** Manifests for a cluster by file name; undefined for those without content. */
  manifests: Map<string, string | undefined>;
}

/**
 * Maps the images that `listImages` lists to a mirror, and creates the manifests that make a cluster use it. Invalid images
 * are faults of the result. Throws UsageError for an invalid registry or catalog image, OpmateError INVALID for tags of two
 * images, and what `listImages` throws.
 */
export async function mapCatalogImages(
  from: string | { archive: string },
  session: Session,
  options: MapImagesOptions,
): Promise<MappedImages> {
  const destination = parseMirror(options);
  const list = await listImages(from, session, options);
  options.onListed?.(list);
  const { tagDigests, pollInterval, mirrorSet = 'ImageContentSourcePolicy' } = options;
  const plan = mapToRegistry(list.images, { destination, tagDigests });
  const catalogImage = options.catalogImage ?? (await list.findCatalogImage());
  const name = getObjectName(catalogImage ?? (typeof from === 'string' ? from : from.archive));
  const manifests = encodeRegistryManifests(plan.images, { name, catalogImage, pollInterval, mirrorSet });
  return {
    ...plan,
    lines: formatMappingLines(plan),
    registry: destination.registry,
    catalogImage,
    manifests,
  };
}

/** Writes the manifests of mapped images to a directory, all or none. Throws OpmateError. */
export async function writeMirrorManifests(
  { manifests }: Pick<MappedImages, 'manifests'>,
  directory: string,
  { workingDirectory }: Pick<Session, 'workingDirectory'>,
): Promise<void> {
  await writeOutputFiles(path.resolve(workingDirectory, directory), manifests);
}

/** Returns the registry and path of a mirror. Throws UsageError for an option that `mapCatalogImages` cannot use. */
function parseMirror({ to, catalogImage }: Pick<MapImagesOptions, 'to' | 'catalogImage'>): ImageName {
  const fault = catalogImage === undefined ? undefined : checkPullSpec(catalogImage);
  if (fault !== undefined) {
    throw invalidValue('request.catalogImage', catalogImage ?? '', fault, {
      hint: 'specify an image that the cluster can pull, e.g. registry.example.com/ns/catalog:v1',
    });
  }
  const name = to.replace(/\/+$/, '');
  const place = parseImageLocation(name, { isPrefix: true });
  const { tag, digest, registry } = place.name;
  if (place.scheme !== 'registry')
    throw invalidValue('request.to', to, 'not a registry', { hint: 'use REGISTRY or REGISTRY/NAMESPACE' });
  const isHost = registry === '' && /^\d+$/.test(tag ?? '');
  if (isHost) return { registry: name.replace(/^docker:\/\//, ''), repository: '' };
  if (tag !== undefined || digest !== undefined || registry === '') {
    throw invalidValue('request.to', to, registry === '' ? 'missing registry' : 'has a tag or digest', {
      hint: 'use REGISTRY or REGISTRY/NAMESPACE, e.g. registry.example.com:5000/community-operators',
    });
  }
  return place.name;
}

/** Returns the name of the objects, from the image or file. */
function getObjectName(catalog: string): string {
  try {
    return withoutNamespace(parseImageName(catalog).repository);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    const [file = ''] = path.basename(catalog).split(':');
    return file.replace(/(?:\.(?:tar|gz|tgz|zst|db))+$/, '');
  }
}
