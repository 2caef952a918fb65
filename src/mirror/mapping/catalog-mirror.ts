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
import { formatTypedReference } from './image-names.js';
import { type MappedImage, type Mapping, type MappingOptions, formatLine, mapImages } from './mapping.js';
import { type MirrorScope, findUnreachable, toMirrorEntries } from './mirror-sets.js';

/** What is to be mirrored of a catalog, before anything of it is read. */
export interface CatalogMirrorPlan extends Mapping {
  catalog: MappedImage;
  /** What the objects for the cluster are called. */
  name: string;
  /** First image whose path differs at the target: mirror sets of scope `registry` do not cover such images. */
  unreachable: MappedImage | undefined;
}

interface PlanOptions extends MappingOptions, CancelOptions {
  logger?: Logger | undefined;
}

/**
 * Reads which images a catalog names, and says where each is to go; the catalog's own among them. Throws what
 * reading the catalog and `mapImages` throw.
 */
export async function planCatalogMirror(catalog: Catalog, options: PlanOptions): Promise<CatalogMirrorPlan> {
  const images = new Set<string>();
  for await (const { image } of readCatalogImages(catalog, options)) images.add(image);
  const mapping = mapImages(images, options);
  const own = mapping.images.find(({ isCatalog }) => isCatalog) as MappedImage;
  const unreachable = own.target.scheme === 'registry' ? findUnreachable(mapping.images) : undefined;
  return { ...mapping, catalog: own, name: getObjectName(options.source.name.name), unreachable };
}

/** Files for whoever carries the mirror to a cluster. */
const outputNames = {
  mapping: 'mapping.txt',
  contentSourcePolicy: 'imageContentSourcePolicy.yaml',
  digestMirrorSet: 'imageDigestMirrorSet.yaml',
  tagMirrorSet: 'imageTagMirrorSet.yaml',
  catalogSource: 'catalogSource.yaml',
} as const;

export interface OutputOptions {
  icspScope: MirrorScope;
  idmsScope: MirrorScope;
  /** Bytes of one document. */
  maxIcspSize: number;
  maxIdmsSize: number;
  /** Writes an ImageTagMirrorSet too, with the scope and size of the ImageDigestMirrorSet. */
  itms?: boolean | undefined;
}

const labels = { 'operators.openshift.org/catalog': 'true' };

/**
 * The texts of the files that go with a mirror, by name; undefined for those that a mirror in files does not have.
 * Throws LimitError where an entry of a mirror set is above the limit on its own.
 */
export function encodeOutput(
  plan: CatalogMirrorPlan,
  options: OutputOptions,
): Map<string, string | undefined> {
  const { images, catalog, name } = plan;
  const inRegistry = catalog.target.scheme === 'registry';
  const mirrorSet = (kind: MirrorSetKind, scope: MirrorScope, maxBytes: number) => {
    const entries = toMirrorEntries(images, scope, kind === 'ImageTagMirrorSet' ? 'tag' : 'digest');
    return inRegistry ? encodeMirrorSets(kind, entries, { name, labels, maxBytes }) : undefined;
  };
  const { icspScope, idmsScope, maxIcspSize, maxIdmsSize, itms = false } = options;
  return new Map([
    [outputNames.mapping, images.map((image) => `${formatLine(image)}\n`).join('')],
    [outputNames.contentSourcePolicy, mirrorSet('ImageContentSourcePolicy', icspScope, maxIcspSize)],
    [outputNames.digestMirrorSet, mirrorSet('ImageDigestMirrorSet', idmsScope, maxIdmsSize)],
    [
      outputNames.tagMirrorSet,
      itms ? mirrorSet('ImageTagMirrorSet', idmsScope, maxIdmsSize) || undefined : undefined,
    ],
    [
      outputNames.catalogSource,
      inRegistry ? encodeCatalogSource({ name, image: formatTypedReference(catalog.target) }) : undefined,
    ],
  ]);
}
