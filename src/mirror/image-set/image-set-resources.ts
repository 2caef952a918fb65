import { DiagnosticsError, ErrorList } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { groupBy } from '../../core/groups.js';
import { type RegistryReference, findReference, formatReference } from '../../core/reference.js';
import {
  type MirrorEntry,
  type MirrorSetKind,
  encodeCatalogSource,
  encodeClusterCatalog,
  encodeMirrorSets,
  sourceAnnotation,
} from '../cluster-manifests.js';
import { type ReleaseSignatures, releaseResources } from '../release/release-resources.js';
import type { CatalogSourceTemplate } from './catalog-source-template.js';
import { type ImageSetConfiguration, type OperatorConfig, getCatalogTarget } from './image-set-config.js';
import { type MirrorTarget, getDestination, pathBelow } from '../naming/mirror-target.js';
import type { TargetCatalog, MirroredContent } from '../plan/mirror-plan.js';
import type { PlannedImage } from '../plan/planned-image.js';
import { formatRepository } from '../naming/image-name.js';
import { maxLabelLength } from '../../kube/names.js';

/** Options of the manifests of a cluster. */
export interface ClusterResourceOptions {
  target: MirrorTarget;
  /** Writes an ImageContentSourcePolicy for old clusters, instead of IDMS and ITMS. */
  icsp?: boolean | undefined;
  /** Prefix of the names of all objects, such as `team-` in `team-idms-operator-0`. */
  prefix?: string | undefined;
  /** Name of CatalogSource and ClusterCatalog of a single catalog; takes precedence over `prefix`. */
  catalogName?: string | undefined;
  /** Interval in which a cluster polls the catalog's tag, in minutes. */
  pollIntervalMinutes?: number | undefined;
  /** Signatures of earlier runs. */
  signatures?: ReleaseSignatures | undefined;
  /** CatalogSource templates by file as named in the configuration, see `readCatalogSourceTemplates`. */
  templates?: ReadonlyMap<string, CatalogSourceTemplate> | undefined;
}

type RegistryImage = PlannedImage<RegistryReference>;

const annotations = { createdBy: 'opmate' };

/**
 * Returns the manifests that make a cluster use a mirror, by file name: mirror sets, and for each catalog a CatalogSource
 * and a ClusterCatalog. Throws OpmateError for two catalogs with one object name. (Source: oc-mirror v2.)
 */
export function encodeClusterResources(
  plan: MirroredContent,
  options: ClusterResourceOptions,
): Map<string, string> {
  requireOneCatalog(options.catalogName, plan.catalogs.length);
  return new Map([
    ...encodeImageSets(plan, options),
    ...releaseResources(plan, options),
    ...encodeCatalogs(plan, options),
  ]);
}

/** Returns mirror sets by file name: those by digest, and with a tag. */
function encodeImageSets(
  plan: Pick<MirroredContent, 'images'>,
  { target, icsp = false, prefix = '' }: ClusterResourceOptions,
): Map<string, string> {
  const files = new Map<string, string>();
  const add = (short: string, kind: MirrorSetKind, images: readonly RegistryImage[]): void => {
    const text = encodeSets(images, target, kind, `${prefix}${short}`);
    if (text !== '') files.set(`${short}-oc-mirror.yaml`, text);
  };
  const images = plan.images
    .flatMap((image) => [image, ...(image.aliases ?? []).map((reference) => ({ ...image, reference }))])
    .filter(({ kind }) => !unlistedKinds.includes(kind));
  const withDigest = images.filter(({ reference }) => reference.digest !== undefined);
  const withTag = images.filter(
    ({ reference: { tag, digest } }) => tag !== undefined || digest === undefined,
  );
  if (icsp) add('icsp', 'ImageContentSourcePolicy', withDigest);
  else {
    add('idms', 'ImageDigestMirrorSet', withDigest);
    add('itms', 'ImageTagMirrorSet', withTag);
  }
  return files;
}

/** Returns a CatalogSource and a ClusterCatalog for each catalog. Throws OpmateError for two with one name. */
function encodeCatalogs(
  { catalogs }: Pick<MirroredContent, 'catalogs'>,
  { pollIntervalMinutes: minutes, catalogName, prefix = '', templates }: ClusterResourceOptions,
): Map<string, string> {
  const files = new Map<string, string>();
  const owners = new Map<string, TargetCatalog>();
  for (const catalog of catalogs) {
    const suffix = getObjectSuffix(catalog, prefix);
    const other = owners.get(suffix);
    if (other !== undefined) {
      const problem = `same object name for ${other.operator.catalog} and ${catalog.operator.catalog}`;
      throw new OpmateError('INVALID', problem, {
        subject: `cs-${suffix}`,
        hint: 'set another targetCatalog or targetTag for one of them',
      });
    }
    owners.set(suffix, catalog);
    const image = catalog.destination;
    const template = templates?.get(catalog.operator.targetCatalogSourceTemplate ?? '');
    const source = {
      name: catalogName ?? `${prefix}cs-${suffix}`,
      image,
      labels: template?.labels,
      annotations: { ...template?.annotations, ...annotations, ...nameSource(catalog) },
      pollInterval: minutes === undefined ? undefined : `${minutes}m`,
      spec: { ...template?.spec, image, sourceType: 'grpc' },
    };
    files.set(`cs-${suffix}.yaml`, encodeCatalogSource(source));
    if (catalog.isDatabase === true) continue;
    const clusterCatalog = {
      name: catalogName ?? `${prefix}cc-${suffix}`,
      image,
      pollIntervalMinutes: minutes,
      annotations: { ...annotations, ...nameSource(catalog) },
    };
    files.set(`cc-${suffix}.yaml`, encodeClusterCatalog(clusterCatalog));
  }
  return files;
}

function requireOneCatalog(catalogName: string | undefined, catalogs: number): void {
  if (catalogName === undefined || catalogs <= 1) return;
  throw new OpmateError('INVALID', `${catalogs} catalogs cannot have one name`, {
    subject: catalogName,
    hint: 'remove the name, or mirror one catalog at a time',
  });
}

/**
 * Throws OpmateError for configured catalogs whose objects have one name, with their lines. The tag of a filtered catalog by
 * digest is unknown before it is built; `encodeClusterResources` checks it.
 */
export function requireObjectNames(
  { file, operators }: Pick<ImageSetConfiguration, 'file' | 'operators'>,
  { target, catalogName, prefix = '' }: Pick<ClusterResourceOptions, 'target' | 'catalogName' | 'prefix'>,
): void {
  requireOneCatalog(catalogName, operators.length);
  const errors = new ErrorList();
  const owners = new Map<string, OperatorConfig>();
  for (const operator of operators) {
    const { repository, tag } = getCatalogTarget(operator);
    if (tag === undefined) continue;
    const destination = getDestination(target, pathBelow(target, repository), tag);
    const suffix = getObjectSuffix({ name: { repository, tag }, destination, operator }, prefix);
    const other = owners.get(suffix);
    owners.set(suffix, other ?? operator);
    if (other === undefined) continue;
    const { catalog, place } = operator;
    const problem = `same object name cs-${suffix} for ${catalog} and ${other.catalog} on line ${other.place.line}`;
    const hint = 'set another targetCatalog or targetTag for one of them';
    const { line, column } = place;
    errors.add(
      new DiagnosticsError([{ severity: 'error', code: 'conflict', problem, hint, file, line, column }]),
    );
  }
  errors.throwIfAny();
}

/** Returns the annotation that maps a mirrored catalog to its source; none for a local one, which has no reference elsewhere. */
function nameSource({ operator: { catalog } }: TargetCatalog): Record<string, string> {
  const reference = findReference(catalog);
  if (reference?.transport !== 'docker') return {};
  return { [sourceAnnotation]: formatReference(reference) };
}

/** Kinds of images that clusters never pull by their source names. */
const unlistedKinds: readonly PlannedImage['kind'][] = ['catalog', 'chart', 'graph', 'signature'];

/** Encodes the documents of one kind: `generic` for images of no operator, then those of operators and releases. */
function encodeSets(
  images: readonly RegistryImage[],
  target: MirrorTarget,
  kind: MirrorSetKind,
  prefix: string,
): string {
  const groups = groupBy(images, ({ kind: imageKind }) => {
    if (imageKind === 'additional' || imageKind === 'helm') return 'generic';
    return imageKind === 'release' || imageKind === 'component' ? 'release' : 'operator';
  });
  return (['generic', 'operator', 'release'] as const)
    .map((name) => {
      const entries = (groups.get(name) ?? []).flatMap((image) => toMirrorEntry(image, target));
      return encodeMirrorSets(kind, entries, { name: `${prefix}-${name}`, annotations });
    })
    .join('');
}

/**
 * Returns an entry for the namespace if the path at the target ends with that at the source, which shortened paths may do
 * by chance; else for the repository.
 */
function toMirrorEntry(
  { reference, target: { repository } }: RegistryImage,
  { registry, maxNestedPaths }: MirrorTarget,
): MirrorEntry[] {
  // Clusters know local images by their new names only.
  if (reference.transport !== 'docker') return [];
  const source = formatRepository(reference);
  const mirror = formatRepository({ registry, repository });
  const isBelow = `/${repository}`.endsWith(`/${reference.repository}`);
  if (maxNestedPaths !== undefined || !isBelow) return [{ source, mirrors: [mirror] }];
  return [{ source: getParent(source), mirrors: [getParent(mirror)] }];
}

function getParent(name: string): string {
  return name.slice(0, name.lastIndexOf('/'));
}

/** Number of characters of a tag in the name of an object. */
const maxTagLength = 12;

/** Reports whether a text is a valid object name: a DNS label. */
export function isObjectName(text: string): boolean {
  return text.length <= maxLabelLength && /^[a-z]([a-z0-9-]*[a-z0-9])?$/.test(text);
}

/** Reports whether a text is a valid prefix of object names, at most half their length. */
export function isObjectPrefix(text: string): boolean {
  return text.length <= maxLabelLength / 2 && /^[a-z][a-z0-9-]*$/.test(text);
}

/** Returns the names of a catalog's objects without `cs-` or `cc-`: end of its path and start of its tag, as DNS label. */
function getObjectSuffix({ name: { tag }, destination }: TargetCatalog, prefix: string): string {
  const last = destination.slice(destination.lastIndexOf('/') + 1, destination.lastIndexOf(':'));
  const label = (text: string): string => text.toLowerCase().replace(/[^a-z0-9-]/g, '-');
  const short = label(tag.slice(0, maxTagLength)) || '0';
  const room = maxLabelLength - prefix.length - 'cs-'.length - short.length - 1;
  return `${label(last).slice(0, room)}-${short}`.replace(/-+$/, '');
}
