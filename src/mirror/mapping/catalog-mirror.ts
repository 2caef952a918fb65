import type { Catalog } from '../../catalog/catalog.js';
import type { CancelOptions } from '../../core/concurrency.js';
import type { Logger } from '../../core/log.js';
import { readCatalogImages } from '../catalog-images.js';
import {
  type MirrorSetKind,
  encodeCatalogSource,
  encodeMirrorSets,
  getObjectName,
} from '../cluster-manifests.js';
import { formatImageLocation } from '../naming/image-location.js';
import { withoutNamespace } from '../naming/image-name.js';
import { type MappedImage, type Mapping, type MappingOptions, formatLine, mapImages } from './mapping.js';
import { type MirrorScope, findUnreachable, toMirrorEntries } from './mirror-sets.js';

/** Plan of mirroring a catalog and its images. */
export interface CatalogMirrorPlan extends Mapping {
  catalog: MappedImage;
  /** Name of the objects for the cluster. */
  name: string;
  /** First image whose path differs at the target: mirror sets of scope `registry` do not cover such images. */
  unreachable: MappedImage | undefined;
}

interface PlanOptions extends MappingOptions, CancelOptions {
  logger?: Logger | undefined;
}

/** Maps a catalog and its images to their targets. Throws errors of reading the catalog and of `mapImages`. */
export async function planCatalogMirror(catalog: Catalog, options: PlanOptions): Promise<CatalogMirrorPlan> {
  const images = new Set<string>();
  for await (const { image } of readCatalogImages(catalog, options)) images.add(image);
  const mapping = mapImages(images, options);
  const mapped = mapping.images.find(({ isCatalog }) => isCatalog) as MappedImage;
  const unreachable = mapped.target.scheme === 'registry' ? findUnreachable(mapping.images) : undefined;
  return {
    ...mapping,
    catalog: mapped,
    name: getObjectName(withoutNamespace(options.source.name.repository)),
    unreachable,
  };
}

/** Options of the files for a cluster. */
export interface OutputOptions {
  /** Default `repository`. */
  icspScope?: MirrorScope | undefined;
  /** Default `repository`. */
  idmsScope?: MirrorScope | undefined;
  /** Maximum bytes of a document. */
  maxIcspSize?: number | undefined;
  /** Maximum bytes of a document. */
  maxIdmsSize?: number | undefined;
  /** Writes an ImageTagMirrorSet too, with scope and size of the ImageDigestMirrorSet. */
  itms?: boolean | undefined;
  /** Interval of polls in the CatalogSource, such as `30m`. */
  pollInterval?: string | undefined;
}

const labels = { 'operators.openshift.org/catalog': 'true' };

/**
 * Returns mapping and manifests of a mirror by file name; undefined for files that a mirror in `file://` does not have.
 * Throws LimitError for an entry of a mirror set that exceeds the limit.
 */
export function encodeOutput(
  plan: CatalogMirrorPlan,
  options: OutputOptions,
): Map<string, string | undefined> {
  const { images, catalog, name } = plan;
  const inRegistry = catalog.target.scheme === 'registry';
  const mirrorSet = (kind: MirrorSetKind, scope: MirrorScope = 'repository', maxBytes?: number) => {
    const entries = toMirrorEntries(images, scope, kind === 'ImageTagMirrorSet' ? 'tag' : 'digest');
    return inRegistry ? encodeMirrorSets(kind, entries, { name, labels, maxBytes }) : undefined;
  };
  const { icspScope, idmsScope, maxIcspSize, maxIdmsSize, itms = false, pollInterval } = options;
  const tagSet = itms ? mirrorSet('ImageTagMirrorSet', idmsScope, maxIdmsSize) : undefined;
  const image = formatImageLocation(catalog.target);
  return new Map([
    ['mapping.txt', images.map((item) => `${formatLine(item)}\n`).join('')],
    ['imageContentSourcePolicy.yaml', mirrorSet('ImageContentSourcePolicy', icspScope, maxIcspSize)],
    ['imageDigestMirrorSet.yaml', mirrorSet('ImageDigestMirrorSet', idmsScope, maxIdmsSize)],
    ['imageTagMirrorSet.yaml', tagSet || undefined],
    ['catalogSource.yaml', inRegistry ? encodeCatalogSource({ name, image, pollInterval }) : undefined],
  ]);
}
