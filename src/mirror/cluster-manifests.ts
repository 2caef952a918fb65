/** The objects that make a cluster use a mirror, as YAML text with keys in alphabetical order. */
import { LimitError } from '../core/errors.js';
import { getOrAdd } from '../core/groups.js';
import type { JsonObject } from '../document/json.js';
import { compareBytes } from '../core/order.js';
import { encodeYaml } from '../document/yaml.js';

/** What any object may carry in addition to its name. */
interface ObjectMetadata {
  labels?: Readonly<Record<string, string>> | undefined;
  annotations?: Readonly<Record<string, string>> | undefined;
}

/** Where the images of a repository, namespace or registry are to be found, in the order to try. */
export interface MirrorEntry {
  source: string;
  mirrors: readonly string[];
}

export type MirrorSetKind = 'ImageContentSourcePolicy' | 'ImageDigestMirrorSet' | 'ImageTagMirrorSet';

interface MirrorSetOptions extends ObjectMetadata {
  /** The documents are called NAME-0, NAME-1, … */
  name: string;
  /** Bytes of a document; 250,000 unless told, which leaves room to what a cluster adds. */
  maxBytes?: number | undefined;
}

/** Bytes of a document of a mirror set, unless told, and at most. */
export const maxMirrorSetBytes = 250_000;

const mirrorSets: Readonly<Record<MirrorSetKind, { apiVersion: string; list: string }>> = {
  ImageContentSourcePolicy: { apiVersion: 'operator.openshift.io/v1alpha1', list: 'repositoryDigestMirrors' },
  ImageDigestMirrorSet: { apiVersion: 'config.openshift.io/v1', list: 'imageDigestMirrors' },
  ImageTagMirrorSet: { apiVersion: 'config.openshift.io/v1', list: 'imageTagMirrors' },
};

/**
 * Entries as the documents of a mirror set, each begun by `---`, sorted by source; a new document begins where
 * the next entry would make one larger than `maxBytes`. Entries of one source become one. The empty text where
 * there are no entries. Throws LimitError for an entry that is too large on its own.
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
    const own = Buffer.byteLength(encodeMirrorSet(kind, [item], documents.length, options)) - empty;
    if (items.length > 0 && size + own > maxBytes) {
      finish();
      items = [];
    }
    if (items.length === 0) size = emptySize(kind, documents.length, options);
    if (size + own > maxBytes) {
      throw new LimitError(
        `${kind} ${options.name}: the entry of ${source} alone is above ${maxBytes} bytes`,
        {
          hint: 'raise the size limit of mirror sets',
        },
      );
    }
    items.push(item);
    size += own;
  }
  if (items.length > 0) finish();
  return documents.join('');
}

/** One entry a source, sorted by it; its mirrors each once, in the order in which they came. */
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
  const metadata = { ...getMetadata(options), name: `${options.name}-${index}` };
  return `---\n${encodeYaml({ apiVersion, kind, metadata, spec: { [list]: [...items] } })}`;
}

/** What a document takes in addition to its entries. */
function emptySize(kind: MirrorSetKind, index: number, options: MirrorSetOptions): number {
  return Buffer.byteLength(encodeMirrorSet(kind, [], index, options)) - ' []'.length;
}

interface CatalogSourceOptions extends ObjectMetadata {
  name: string;
  image: string;
  /** `openshift-marketplace` unless told. */
  namespace?: string | undefined;
  /** How often the cluster looks for another image behind the tag, e.g. `30m`. */
  pollInterval?: string | undefined;
  /** Fields of the specification that win over what is made here. */
  spec?: JsonObject | undefined;
}

/** A CatalogSource that serves an image, as one YAML document without `---`. */
export function encodeCatalogSource(options: CatalogSourceOptions): string {
  const { name, image, namespace = 'openshift-marketplace', pollInterval, spec = {} } = options;
  return encodeYaml({
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'CatalogSource',
    metadata: { ...getMetadata(options), name, namespace },
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
  /** Minutes between looks for another image behind a tag; a cluster refuses it for a digest. */
  pollIntervalMinutes?: number | undefined;
}

/** A ClusterCatalog (OLM v1) of an image, as one YAML document without `---`. */
export function encodeClusterCatalog(options: ClusterCatalogOptions): string {
  const { name, image, pollIntervalMinutes } = options;
  return encodeYaml({
    apiVersion: 'olm.operatorframework.io/v1',
    kind: 'ClusterCatalog',
    metadata: { ...getMetadata(options), name },
    spec: {
      priority: 0,
      source: {
        image: { ref: image, ...(pollIntervalMinutes !== undefined && { pollIntervalMinutes }) },
        type: 'Image',
      },
    },
  });
}

function getMetadata({ labels, annotations }: ObjectMetadata): JsonObject {
  return {
    ...(annotations !== undefined && { annotations: { ...annotations } }),
    ...(labels !== undefined && { labels: { ...labels } }),
  };
}

/** The longest name that an object may have, and still have a number after it. */
const maxNameLength = 240;

/**
 * A name that a cluster takes for an object (a DNS subdomain): lower case, everything else than letters, digits
 * and dots a `-`, beginning and ending with a letter or digit. A name that is one already stays as it is.
 * `catalog` where nothing is left.
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
