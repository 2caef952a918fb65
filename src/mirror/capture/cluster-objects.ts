import type { Diagnostic } from '../../core/diagnostic.js';
import type { JsonObject, JsonValue } from '../../document/json.js';
import { getList, getObject, getText, getValue } from '../../document/json-fields.js';
import { sourceAnnotation } from '../cluster-manifests.js';
import { getLabels } from '../../kube/label-selector.js';
import { type ClusterFile, readClusterManifests } from '../../cluster/snapshot-files.js';

/** Catalogs and installed operators of a cluster. */
export interface ClusterObjects {
  subscriptions: Subscription[];
  extensions: Extension[];
  csvs: InstalledCsv[];
  /** CatalogSources by `namespace/name`, and ClusterCatalogs by name. */
  catalogSources: Map<string, ClusterCatalog>;
  clusterCatalogs: Map<string, ClusterCatalog>;
  /** Mirrors and their sources. */
  mirrors: { mirror: string; source: string }[];
  /** Errors of unreadable documents; warnings of documents other than objects, and of files of a directory. */
  faults: Diagnostic[];
}

/** A CatalogSource or ClusterCatalog. */
export interface ClusterCatalog {
  /** Kind and name: `CatalogSource openshift-marketplace/redhat-operators`. */
  title: string;
  /** Undefined for a catalog without an image. */
  image: string | undefined;
  /** Reference of the catalog that it was mirrored from, by its annotation; empty for none. */
  source: string;
  /** A mirroring tool created it. */
  isMirror: boolean;
  priority: number;
  labels: ReadonlyMap<string, string>;
  isEnabled: boolean;
}

/** A Subscription (OLM v0). */
export interface Subscription {
  title: string;
  namespace: string;
  package: string;
  /** Empty for the default channel. */
  channel: string;
  /** `namespace/name` of the CatalogSource. */
  source: string;
  installedCsv: string;
  /** Target bundle of an upgrade in progress. */
  currentCsv: string;
  startingCsv: string;
}

/** A ClusterExtension (OLM v1). */
export interface Extension {
  title: string;
  package: string;
  channels: string[];
  /** Label selector of catalogs; empty for any. */
  selector: JsonObject;
  bundle: string;
  version: string;
  /** Version range for upgrades. */
  range: string;
}

interface InstalledCsv {
  namespace: string;
  name: string;
  version: string;
  isCopy: boolean;
}

/** Kinds of objects that are read. */
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

/** Returns a set without objects. */
export function emptyClusterObjects(): ClusterObjects {
  return {
    subscriptions: [],
    extensions: [],
    csvs: [],
    mirrors: [],
    faults: [],
    catalogSources: new Map(),
    clusterCatalogs: new Map(),
  };
}

/**
 * Adds the objects of a file; ignores other kinds and groups. `isNamed` if the user named the file, not its directory,
 * in which a file may be incomplete.
 */
export function addClusterObjects(objects: ClusterObjects, file: ClusterFile): void {
  const { manifests, findings } = readClusterManifests(file);
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
    for (const entry of getList(value, 'spec', list)) {
      const source = getText(entry, 'source');
      for (const mirror of getList(entry, 'mirrors'))
        if (typeof mirror === 'string' && mirror !== '' && source !== '') mirrors.push({ mirror, source });
    }
  };

const readers: Readonly<Record<string, Reader>> = {
  'operators.coreos.com/Subscription': ({ subscriptions }, { value, namespace, title }) => {
    subscriptions.push({
      title,
      namespace,
      package: getText(value, 'spec', 'name'),
      channel: getText(value, 'spec', 'channel'),
      source: `${getText(value, 'spec', 'sourceNamespace')}/${getText(value, 'spec', 'source')}`,
      installedCsv: getText(value, 'status', 'installedCSV'),
      currentCsv: getText(value, 'status', 'currentCSV'),
      startingCsv: getText(value, 'spec', 'startingCSV'),
    });
  },
  'operators.coreos.com/ClusterServiceVersion': ({ csvs }, { value, name, namespace }) => {
    const isCopy =
      getText(value, 'metadata', 'labels', 'olm.copiedFrom') !== '' ||
      getText(value, 'status', 'reason') === 'Copied';
    csvs.push({ namespace, name, version: getText(value, 'spec', 'version'), isCopy });
  },
  'operators.coreos.com/CatalogSource': ({ catalogSources }, { value, name, namespace, title }) => {
    const image = getText(value, 'spec', 'image');
    catalogSources.set(`${namespace}/${name}`, {
      title,
      image: image === '' ? undefined : image,
      ...readOrigin(value),
      isEnabled: true,
      priority: getNumber(value, 'spec', 'priority'),
      labels: getLabels(value),
    });
  },
  'olm.operatorframework.io/ClusterCatalog': ({ clusterCatalogs }, { value, name, title }) => {
    const image = getText(value, 'spec', 'source', 'image', 'ref');
    clusterCatalogs.set(name, {
      title,
      image: image === '' ? undefined : image,
      ...readOrigin(value),
      priority: getNumber(value, 'spec', 'priority'),
      // Every catalog has its name as a label. (Source: catalogd.)
      labels: new Map([...getLabels(value), ['olm.operatorframework.io/metadata.name', name]]),
      isEnabled: getText(value, 'spec', 'availabilityMode') !== 'Unavailable',
    });
  },
  'olm.operatorframework.io/ClusterExtension': ({ extensions }, { value, title }) => {
    const selector = getValue(value, 'spec', 'source', 'catalog', 'selector');
    extensions.push({
      title,
      package: getText(value, 'spec', 'source', 'catalog', 'packageName'),
      channels: getList(value, 'spec', 'source', 'catalog', 'channels').filter(
        (item) => typeof item === 'string',
      ),
      selector: getObject(selector),
      bundle: getText(value, 'status', 'install', 'bundle', 'name'),
      version: getText(value, 'status', 'install', 'bundle', 'version'),
      range: getText(value, 'spec', 'source', 'catalog', 'version'),
    });
  },
  'config.openshift.io/ImageDigestMirrorSet': readMirrors('imageDigestMirrors'),
  'config.openshift.io/ImageTagMirrorSet': readMirrors('imageTagMirrors'),
  'operator.openshift.io/ImageContentSourcePolicy': readMirrors('repositoryDigestMirrors'),
};

function readOrigin(value: JsonObject): Pick<ClusterCatalog, 'source' | 'isMirror'> {
  const source = getText(value, 'metadata', 'annotations', sourceAnnotation);
  const creator = getText(value, 'metadata', 'annotations', 'createdBy');
  return { source, isMirror: source !== '' || /^(?:opmate|oc-mirror)\b/.test(creator) };
}

function getNumber(value: JsonValue | undefined, ...path: string[]): number {
  const match = getValue(value, ...path);
  return typeof match === 'number' ? match : 0;
}
