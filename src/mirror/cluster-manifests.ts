/** Manifests that make a cluster use a mirror, as YAML with sorted keys. */
import { LimitError, invalidValue } from '../core/errors.js';
import { getOrAdd } from '../core/groups.js';
import type { JsonObject } from '../document/json.js';
import { compareBytes } from '../core/order.js';
import { setFields } from '../kube/object.js';
import { encodeYaml } from '../document/yaml.js';

interface ObjectMetadata {
  labels?: Readonly<Record<string, string>> | undefined;
  annotations?: Readonly<Record<string, string>> | undefined;
}

const metadataFields = ['annotations', 'labels'] as const;

/** Mirrors of a repository, namespace or registry, in order of preference. */
export interface MirrorEntry {
  source: string;
  mirrors: readonly string[];
}

/** Kind of a mirror set. */
export type MirrorSetKind = 'ImageContentSourcePolicy' | 'ImageDigestMirrorSet' | 'ImageTagMirrorSet';

interface MirrorSetOptions extends ObjectMetadata {
  /** Documents have the names NAME-0, NAME-1, … */
  name: string;
  /** Maximum bytes of a document; default 250,000, which leaves room for fields that a cluster adds. */
  maxBytes?: number | undefined;
}

/** Default and maximum bytes of a document of a mirror set. */
const maxMirrorSetBytes = 250_000;

/** Throws UsageError for bytes of a document of a mirror set that `option` cannot have. */
export function requireMirrorSetBytes(option: string, bytes: number | undefined): void {
  if (bytes === undefined || (bytes >= 1 && bytes <= maxMirrorSetBytes)) return;
  throw invalidValue(option, String(bytes), `expected an integer from 1 to ${maxMirrorSetBytes}`);
}

const mirrorSets: Readonly<Record<MirrorSetKind, { apiVersion: string; list: string }>> = {
  ImageContentSourcePolicy: { apiVersion: 'operator.openshift.io/v1alpha1', list: 'repositoryDigestMirrors' },
  ImageDigestMirrorSet: { apiVersion: 'config.openshift.io/v1', list: 'imageDigestMirrors' },
  ImageTagMirrorSet: { apiVersion: 'config.openshift.io/v1', list: 'imageTagMirrors' },
};

/**
 * Encodes entries as documents of a mirror set, each started by `---` and at most `maxBytes` long, sorted by source.
 * Entries of one source are merged; no entries are an empty text. Throws LimitError for an entry that is too large.
 */
export function encodeMirrorSets(
  kind: MirrorSetKind,
  entries: Iterable<MirrorEntry>,
  options: MirrorSetOptions,
): string {
  const { maxBytes = maxMirrorSetBytes } = options;
  const documents: string[] = [];
  let items: JsonObject[] = [];
  let size = 0;
  const finish = (): void => void documents.push(encodeMirrorSet(kind, items, documents.length, options));
  for (const { source, mirrors } of mergeEntries(entries)) {
    const item: JsonObject = { mirrors: [...mirrors], source };
    const empty = emptySize(kind, documents.length, options);
    const itemSize = Buffer.byteLength(encodeMirrorSet(kind, [item], documents.length, options)) - empty;
    if (items.length > 0 && size + itemSize > maxBytes) {
      finish();
      items = [];
    }
    if (items.length === 0) size = emptySize(kind, documents.length, options);
    if (size + itemSize > maxBytes) {
      throw new LimitError(`the entry of ${source} alone is above ${maxBytes} bytes`, {
        subject: `${kind} ${options.name}`,
        hint: 'raise the size limit of mirror sets',
      });
    }
    items.push(item);
    size += itemSize;
  }
  if (items.length > 0) finish();
  return documents.join('');
}

/** Merges the entries of each source, sorted by source; mirrors keep their order, each once. */
export function mergeEntries(entries: Iterable<MirrorEntry>): MirrorEntry[] {
  const merged = new Map<string, Set<string>>();
  for (const { source, mirrors } of entries) {
    const known = getOrAdd(merged, source, () => new Set());
    for (const mirror of mirrors) known.add(mirror);
  }
  return [...merged]
    .map(([source, mirrors]) => ({ source, mirrors: [...mirrors] }))
    .sort((a, b) => compareBytes(a.source, b.source));
}

function encodeMirrorSet(
  kind: MirrorSetKind,
  items: readonly JsonObject[],
  index: number,
  options: MirrorSetOptions,
): string {
  const { apiVersion, list } = mirrorSets[kind];
  const metadata = { ...setFields(options, metadataFields), name: `${options.name}-${index}` };
  return `---\n${encodeYaml({ apiVersion, kind, metadata, spec: { [list]: [...items] } })}`;
}

/** Returns the bytes of a document without entries. */
function emptySize(kind: MirrorSetKind, index: number, options: MirrorSetOptions): number {
  return Buffer.byteLength(encodeMirrorSet(kind, [], index, options)) - ' []'.length;
}

/** Annotation of a CatalogSource and ClusterCatalog: reference of the catalog that theirs was mirrored from. */
export const sourceAnnotation = 'mirroredFrom';

interface CatalogSourceOptions extends ObjectMetadata {
  name: string;
  image: string;
  /** Default `openshift-marketplace`. */
  namespace?: string | undefined;
  /** Interval in which the cluster polls the tag, such as `30m`. */
  pollInterval?: string | undefined;
  /** Fields of `spec`, which take precedence. */
  spec?: JsonObject | undefined;
}

/** Encodes a CatalogSource of an image, without `---`. */
export function encodeCatalogSource(options: CatalogSourceOptions): string {
  const { name, image, namespace = 'openshift-marketplace', pollInterval, spec = {} } = options;
  return encodeYaml({
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'CatalogSource',
    metadata: { ...setFields(options, metadataFields), name, namespace },
    spec: {
      image,
      sourceType: 'grpc',
      ...(pollInterval !== undefined && { updateStrategy: { registryPoll: { interval: pollInterval } } }),
      ...spec,
    },
  });
}

interface ClusterCatalogOptions extends ObjectMetadata {
  name: string;
  /** With a tag or digest. */
  image: string;
  /** Interval in which the cluster polls the tag, in minutes; invalid for a digest. */
  pollIntervalMinutes?: number | undefined;
}

/** Encodes a ClusterCatalog (OLM v1) of an image, without `---`. */
export function encodeClusterCatalog(options: ClusterCatalogOptions): string {
  const { name, image, pollIntervalMinutes } = options;
  return encodeYaml({
    apiVersion: 'olm.operatorframework.io/v1',
    kind: 'ClusterCatalog',
    metadata: { ...setFields(options, metadataFields), name },
    spec: {
      priority: 0,
      source: {
        image: { ref: image, ...(pollIntervalMinutes !== undefined && { pollIntervalMinutes }) },
        type: 'Image',
      },
    },
  });
}

/** Maximum length of an object name, without a number appended to it. */
const maxNameLength = 240;

/**
 * Returns a valid object name (a DNS subdomain): lower case, with `-` for characters other than letters, digits and dots,
 * trimmed to start and end with a letter or digit. Valid names are unchanged; an empty result becomes `catalog`.
 */
export function getObjectName(text: string): string {
  const labels = text
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .slice(0, maxNameLength)
    .split('.')
    .map((label) => label.replace(/^-+|-+$/g, ''));
  return labels.filter((label) => label !== '').join('.') || 'catalog';
}
