import { OpmateError } from '../../core/errors.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { type RegistryReference, checkPullSpec } from '../../core/reference.js';
import {
  type MirrorEntry,
  type MirrorSetKind,
  encodeCatalogSource,
  encodeMirrorSets,
  getObjectName,
} from '../cluster-manifests.js';
import type { MirrorPlan } from '../plan/mirror-plan.js';
import type { PlannedImage } from '../plan/planned-image.js';
import { findSharedRepositories, requireOneImagePerTag } from '../plan/collisions.js';
import {
  type ImageName,
  formatCanonicalRepository,
  formatImageName,
  formatRepository,
  getDestinationTag,
  parseImageName,
  toReference,
  withDockerDefaults,
} from '../naming/image-name.js';

/** Names of an image while the targets are chosen. */
interface RegistryPair {
  /** Has the defaults of Docker clients. */
  source: ImageName;
  /** Has no tag if the image keeps its tag, or is the only digest of its repository. */
  target: ImageName;
}

interface RegistryMappingOptions {
  /** Registry and prefix of the repositories. */
  destination: ImageName;
  /** Tags digests as `oc adm catalog mirror` does, so registries do not prune them. */
  tagDigests?: boolean | undefined;
}

/**
 * Maps each image to a repository below the destination, named by the whole source name with `-` for `/`, `.` and `:`.
 * Digests of a repository with several images get tags, since `oc image mirror` requires unique targets. Throws OpmateError
 * INVALID, with one error each as its cause, for tags of two images.
 */
export function mapToRegistry(images: Iterable<string>, options: RegistryMappingOptions): MirrorPlan {
  const { destination, tagDigests = false } = options;
  const prefix = destination.repository;
  const pairs = new Map<string, RegistryPair & { written: ImageName }>();
  const counts = new Map<string, number>();
  const faults: { name: string; error: OpmateError }[] = [];
  for (const text of sortedByBytes(images)) {
    try {
      const written = parseImageName(text);
      const source = withDockerDefaults(written);
      const flat = formatCanonicalRepository(source).toLowerCase().replace(/[/.:]/g, '-');
      const repository = prefix === '' ? flat : `${prefix}/${flat}`;
      const target: ImageName = { registry: destination.registry, repository };
      const fault = checkPullSpec(formatImageName(target));
      if (fault !== undefined)
        throw new OpmateError('INVALID', `target ${formatImageName(target)}: ${fault}`, {
          subject: text,
        });
      const from = formatImageName(source);
      if (pairs.has(from)) continue;
      pairs.set(from, { source, target, written });
      counts.set(repository, (counts.get(repository) ?? 0) + 1);
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      faults.push({ name: text, error });
    }
  }
  const tagged = [...pairs.values()].map(({ source, target, written }) => {
    const needsTag = source.digest !== undefined && (tagDigests || (counts.get(target.repository) ?? 0) > 1);
    const tag = getDestinationTag({ ...written, tag: undefined });
    return { source, target: needsTag ? { ...target, tag } : target };
  });
  const sorted = tagged.sort((a, b) => compareBytes(formatPair(a), formatPair(b)));
  requireOneImagePerTag(sorted, {
    getTag: ({ source, target }) => {
      const tag = target.tag ?? (source.digest === undefined ? source.tag : undefined);
      return tag === undefined ? undefined : `${formatRepository(target)}:${tag}`;
    },
    getName: ({ source }) => formatImageName(source),
    isSame: (a, b) => formatImageName(a.source) === formatImageName(b.source),
    getHint: () =>
      'remove one of them with options.packages, options.channels or options.bundles, and mirror it below another namespace',
  });
  const warnings = findSharedRepositories(
    sorted.map(({ source, target }) => ({
      source: formatCanonicalRepository(source),
      target: formatRepository(target),
    })),
  );
  return { images: sorted.map(toPlannedImage), catalogs: [], faults, blocked: [], warnings };
}

function toPlannedImage({ source, target }: RegistryPair): PlannedImage<RegistryReference> {
  const text = formatImageName(source);
  const destination = formatImageName(target);
  return {
    kind: 'related',
    reference: toReference(source),
    source: text,
    title: text,
    target: toReference(target),
    destination,
    bundles: [],
  };
}

function formatPair({ source, target }: RegistryPair): string {
  return `${formatImageName(source)}=${formatImageName(target)}`;
}

interface RegistryManifestOptions {
  /** Name of the objects; converted to a valid one. */
  name: string;
  /** Image of the catalog for the cluster; undefined if it has none. */
  catalogImage: string | undefined;
  /** Interval of polls in the CatalogSource, such as `30m`. */
  pollInterval?: string | undefined;
  /** Kind of mirror set to write; ImageDigestMirrorSet comes with an ImageTagMirrorSet. */
  mirrorSet: 'ImageContentSourcePolicy' | 'ImageDigestMirrorSet';
}

/** Returns manifests by file name; undefined for those without content. Throws LimitError, see `encodeMirrorSets`. */
export function encodeRegistryManifests(
  images: readonly PlannedImage[],
  { name, catalogImage, pollInterval, mirrorSet }: RegistryManifestOptions,
): Map<string, string | undefined> {
  const labels = { 'operators.openshift.org/catalog': 'true' };
  const setName = getObjectName(name);
  const encodeSet = (kind: MirrorSetKind, byDigest: boolean): string | undefined => {
    const entries = images.flatMap(({ reference, target }): MirrorEntry[] => {
      if (reference.transport !== 'docker' || target.transport !== 'docker') return [];
      if ((reference.digest !== undefined) !== byDigest) return [];
      return [{ source: formatCanonicalRepository(reference), mirrors: [formatRepository(target)] }];
    });
    return encodeMirrorSets(kind, entries, { name: setName, labels }) || undefined;
  };
  const isNew = mirrorSet === 'ImageDigestMirrorSet';
  const catalogSource =
    catalogImage === undefined
      ? undefined
      : encodeCatalogSource({ name: getServiceName(name), image: catalogImage, pollInterval });
  return new Map([
    ['imagecontentsourcepolicy.yaml', isNew ? undefined : encodeSet('ImageContentSourcePolicy', true)],
    ['imagedigestmirrorset.yaml', isNew ? encodeSet('ImageDigestMirrorSet', true) : undefined],
    ['imagetagmirrorset.yaml', isNew ? encodeSet('ImageTagMirrorSet', false) : undefined],
    ['catalogsource.yaml', catalogSource],
  ]);
}

/** Returns a valid name of a CatalogSource and its service: a DNS label that starts with a letter. */
function getServiceName(text: string): string {
  const label = getObjectName(text).replaceAll('.', '-');
  return (/^[a-z]/.test(label) ? label : `cs-${label}`).slice(0, 63).replace(/-+$/, '');
}
