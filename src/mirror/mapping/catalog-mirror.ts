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
import { formatImageName, withoutNamespace } from '../naming/image-name.js';
import { type MappingOptions, mapImages } from './mapping.js';
import { type MirrorPlan, formatMappingLines } from '../plan/mirror-plan.js';
import type { PlannedImage } from '../plan/planned-image.js';
import { type MirrorScope, findUnreachable, toMirrorEntries } from './mirror-sets.js';

/** Plan of mirroring a catalog and its images. */
export interface CatalogMirrorPlan extends MirrorPlan {
  catalog: PlannedImage;
  /** Name of the objects for the cluster. */
  name: string;
  /** First image whose path differs at the target: mirror sets of scope `registry` do not cover such images. */
  unreachable: PlannedImage | undefined;
}

interface PlanOptions extends MappingOptions, CancelOptions {
  logger?: Logger | undefined;
}

/** Maps a catalog and its images to their targets. Throws errors of reading the catalog and of `mapImages`. */
export async function planCatalogMirror(catalog: Catalog, options: PlanOptions): Promise<CatalogMirrorPlan> {
  const images = new Set<string>();
  for await (const { image } of readCatalogImages(catalog, options)) images.add(image);
  const mapping = mapImages(images, options);
  const mapped = mapping.images.find(({ kind }) => kind === 'catalog') as PlannedImage;
  const name = getObjectName(withoutNamespace(options.source.name.repository));
  return { ...mapping, catalog: mapped, name, unreachable: findUnreachable(mapping.images) };
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
  const { target } = catalog;
  const inRegistry = target.transport === 'docker';
  const mirrorSet = (kind: MirrorSetKind, scope: MirrorScope = 'repository', maxBytes?: number) => {
    const entries = toMirrorEntries(images, scope, kind === 'ImageTagMirrorSet' ? 'tag' : 'digest');
    return inRegistry ? encodeMirrorSets(kind, entries, { name, labels, maxBytes }) : undefined;
  };
  const { icspScope, idmsScope, maxIcspSize, maxIdmsSize, itms = false, pollInterval } = options;
  const tagSet = itms ? mirrorSet('ImageTagMirrorSet', idmsScope, maxIdmsSize) : undefined;
  return new Map([
    [
      'mapping.txt',
      formatMappingLines(plan)
        .map((line) => `${line}\n`)
        .join(''),
    ],
    ['imageContentSourcePolicy.yaml', mirrorSet('ImageContentSourcePolicy', icspScope, maxIcspSize)],
    ['imageDigestMirrorSet.yaml', mirrorSet('ImageDigestMirrorSet', idmsScope, maxIdmsSize)],
    ['imageTagMirrorSet.yaml', tagSet || undefined],
    [
      'catalogSource.yaml',
      target.transport === 'docker'
        ? encodeCatalogSource({
            name,
            image: formatImageName({ ...target, digest: catalog.reference.digest }),
            pollInterval,
          })
        : undefined,
    ],
  ]);
}
