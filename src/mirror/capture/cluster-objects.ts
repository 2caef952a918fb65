import type { Diagnostic } from '../../core/diagnostic.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { readManifests } from '../../kube/manifests.js';

/** What a cluster says about its catalogs and installed operators. */
export interface ClusterObjects {
  subscriptions: Subscription[];
  extensions: Extension[];
  csvs: InstalledCsv[];
  /** CatalogSources by `namespace/name`, and ClusterCatalogs by name. */
  catalogSources: Map<string, ClusterCatalog>;
  clusterCatalogs: Map<string, ClusterCatalog>;
  /** From mirrors to what they mirror. */
  mirrors: { mirror: string; source: string }[];
  /** Documents that cannot be read. */
  faults: Diagnostic[];
}

export interface ClusterCatalog {
  /** As in `CatalogSource openshift-marketplace/redhat-operators`. */
  title: string;
  /** Undefined for one that is not made of an image. */
  image: string | undefined;
  priority: number;
  labels: ReadonlyMap<string, string>;
  isEnabled: boolean;
}

export interface Subscription {
  title: string;
  namespace: string;
  package: string;
  /** Empty for the default channel. */
  channel: string;
  /** `namespace/name` of the CatalogSource. */
  source: string;
  installedCsv: string;
  /** The bundle that an upgrade under way leads to. */
  currentCsv: string;
  startingCsv: string;
}

export interface Extension {
  title: string;
  package: string;
  channels: string[];
  /** Of catalogs; empty for any. */
  selector: JsonObject;
  bundle: string;
  version: string;
  /** The range that it may be upgraded in. */
  range: string;
}

interface InstalledCsv {
  namespace: string;
  name: string;
  version: string;
  isCopy: boolean;
}

/** Kinds that are read; `kubectl get` is asked for them. */
export const clusterKinds = [
  'Subscription',
  'ClusterExtension',
  'ClusterServiceVersion',
  'CatalogSource',
  'ClusterCatalog',
  'ImageDigestMirrorSet',
  'ImageTagMirrorSet',
  'ImageContentSourcePolicy',
];

export function emptyClusterObjects(): ClusterObjects {
  return {
    ...{ subscriptions: [], extensions: [], csvs: [], mirrors: [], faults: [] },
    ...{ catalogSources: new Map(), clusterCatalogs: new Map() },
  };
}

/** Adds the objects of a file; other kinds, and kinds of these names of other groups, are passed over. */
export function addClusterObjects(objects: ClusterObjects, name: string, content: Buffer): void {
  const { manifests, findings } = readManifests([{ name, content }], { prefix: '' });
  objects.faults.push(...findings);
  for (const manifest of manifests) {
    const group = manifest.apiVersion.replace(/\/[^/]*$/, '');
    const add = readers[`${group}/${manifest.kind}`];
    if (add === undefined) continue;
    const { namespace } = manifest;
    const title = `${manifest.kind} ${namespace === '' ? '' : `${namespace}/`}${manifest.name}`;
    add(objects, { value: manifest.load(), name: manifest.name, namespace, title });
  }
}

interface Named {
  value: JsonObject;
  name: string;
  namespace: string;
  title: string;
}

type Reader = (objects: ClusterObjects, object: Named) => void;

const readMirrors =
  (list: string): Reader =>
  ({ mirrors }, { value }) => {
    for (const entry of listAt(value, 'spec', list)) {
      const source = textAt(entry, 'source');
      for (const mirror of listAt(entry, 'mirrors'))
        if (typeof mirror === 'string' && mirror !== '' && source !== '') mirrors.push({ mirror, source });
    }
  };

const readers: Readonly<Record<string, Reader>> = {
  'operators.coreos.com/Subscription': ({ subscriptions }, { value, namespace, title }) => {
    subscriptions.push({
      ...{ title, namespace },
      package: textAt(value, 'spec', 'name'),
      channel: textAt(value, 'spec', 'channel'),
      source: `${textAt(value, 'spec', 'sourceNamespace')}/${textAt(value, 'spec', 'source')}`,
      installedCsv: textAt(value, 'status', 'installedCSV'),
      currentCsv: textAt(value, 'status', 'currentCSV'),
      startingCsv: textAt(value, 'spec', 'startingCSV'),
    });
  },
  'operators.coreos.com/ClusterServiceVersion': ({ csvs }, { value, name, namespace }) => {
    const isCopy =
      textAt(value, 'metadata', 'labels', 'olm.copiedFrom') !== '' ||
      textAt(value, 'status', 'reason') === 'Copied';
    csvs.push({ namespace, name, version: textAt(value, 'spec', 'version'), isCopy });
  },
  'operators.coreos.com/CatalogSource': ({ catalogSources }, { value, name, namespace, title }) => {
    const image = textAt(value, 'spec', 'image');
    catalogSources.set(`${namespace}/${name}`, {
      ...{ title, image: image === '' ? undefined : image, isEnabled: true },
      priority: numberAt(value, 'spec', 'priority'),
      labels: labelsOf(value),
    });
  },
  'olm.operatorframework.io/ClusterCatalog': ({ clusterCatalogs }, { value, name, title }) => {
    const image = textAt(value, 'spec', 'source', 'image', 'ref');
    clusterCatalogs.set(name, {
      ...{ title, image: image === '' ? undefined : image },
      priority: numberAt(value, 'spec', 'priority'),
      // Every catalog has its name as a label. (Source: catalogd.)
      labels: new Map([...labelsOf(value), ['olm.operatorframework.io/metadata.name', name]]),
      isEnabled: textAt(value, 'spec', 'availabilityMode') !== 'Unavailable',
    });
  },
  'olm.operatorframework.io/ClusterExtension': ({ extensions }, { value, title }) => {
    const selector = at(value, 'spec', 'source', 'catalog', 'selector');
    extensions.push({
      title,
      package: textAt(value, 'spec', 'source', 'catalog', 'packageName'),
      channels: listAt(value, 'spec', 'source', 'catalog', 'channels').filter(
        (one) => typeof one === 'string',
      ),
      selector: isJsonObject(selector) ? selector : {},
      bundle: textAt(value, 'status', 'install', 'bundle', 'name'),
      version: textAt(value, 'status', 'install', 'bundle', 'version'),
      range: textAt(value, 'spec', 'source', 'catalog', 'version'),
    });
  },
  'config.openshift.io/ImageDigestMirrorSet': readMirrors('imageDigestMirrors'),
  'config.openshift.io/ImageTagMirrorSet': readMirrors('imageTagMirrors'),
  'operator.openshift.io/ImageContentSourcePolicy': readMirrors('repositoryDigestMirrors'),
};

/** Whether labels meet a selector of Kubernetes; an unknown operator meets nothing. */
export function meetsSelector(labels: ReadonlyMap<string, string>, selector: JsonObject): boolean {
  const wanted = selector['matchLabels'];
  const isMatch = Object.entries(isJsonObject(wanted) ? wanted : {}).every(
    ([key, value]) => labels.get(key) === value,
  );
  return isMatch && listAt(selector, 'matchExpressions').every((one) => meetsExpression(labels, one));
}

function meetsExpression(labels: ReadonlyMap<string, string>, expression: JsonValue): boolean {
  const value = labels.get(textAt(expression, 'key'));
  const values = listAt(expression, 'values');
  switch (textAt(expression, 'operator')) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      return false;
  }
}

function at(value: JsonValue | undefined, ...path: string[]): JsonValue | undefined {
  let found = value;
  for (const key of path) found = isJsonObject(found) && Object.hasOwn(found, key) ? found[key] : undefined;
  return found;
}

function textAt(value: JsonValue | undefined, ...path: string[]): string {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : '';
}

function numberAt(value: JsonValue | undefined, ...path: string[]): number {
  const found = at(value, ...path);
  return typeof found === 'number' ? found : 0;
}

function listAt(value: JsonValue | undefined, ...path: string[]): JsonValue[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

function labelsOf(value: JsonObject): Map<string, string> {
  const labels = at(value, 'metadata', 'labels');
  const entries = Object.entries(isJsonObject(labels) ? labels : {});
  return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}
