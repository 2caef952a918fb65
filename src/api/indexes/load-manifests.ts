import { getLive } from '../../cluster/live.js';
import { type ObjectId, describeId } from '../../cluster/objects.js';
import { OpmateError } from '../../core/errors.js';
import type { JsonObject } from '../../document/json.js';
import { labelFault, subdomainFault } from '../../kube/names.js';
import {
  type AppRegistryNamespace,
  loadAppRegistryNamespace,
  parseAppRegistryNamespace,
} from '../../source/app-registry.js';
import type { Session } from '../../source/session.js';
import { loadAppRegistry } from '../../sqlite/legacy/appregistry.js';
import { loadConfigMap, loadConfigMapObject } from '../../sqlite/legacy/configmap.js';
import { type LoadReport, loadPackageManifests } from '../../sqlite/legacy/manifest-loader.js';
import type { Database } from '../../sqlite/schema/database.js';
import { editDatabase } from '../../sqlite/schema/edit.js';
import { type ClusterOptions, openCluster } from '../deployment/cluster.js';

export { ManifestsError } from '../../sqlite/legacy/manifest-loader.js';

/** Source of bundles in the formats that preceded bundle images. */
export type ManifestSource =
  /** Directory of package manifests. */
  | { kind: 'manifests'; directory: string }
  /** File with a ConfigMap that holds package manifests. */
  | { kind: 'configmap'; file: string }
  /** ConfigMap of a cluster that holds package manifests. */
  | { kind: 'cluster'; configMap: string; namespace: string; cluster?: ClusterOptions | undefined }
  /** Directory of archives that were downloaded from an app registry. */
  | { kind: 'archives'; directory: string }
  /** Namespace of an app registry: `[HOST[/PATH]/]NAMESPACE`, default host `quay.io/cnr`. */
  | {
      kind: 'namespace';
      namespace: string;
      /** URL of the app registry; takes precedence over the host. */
      endpoint?: string | undefined;
      /** Use plain HTTP for an address without scheme; default false. */
      useHttp?: boolean | undefined;
      /** Token, which is sent verbatim. */
      token?: string | undefined;
    };

/** Options of `loadManifests`. */
export interface LoadManifestsOptions {
  /** Load what is valid and report the rest. */
  permissive?: boolean | undefined;
  /** Name of the database in messages; default its path. */
  name?: string | undefined;
}

/**
 * Loads package manifests into the database file of an index, in one transaction. A missing database is created. Throws
 * ManifestsError with all problems unless `permissive`; the database is then as it was.
 */
export async function loadManifests(
  file: string,
  source: ManifestSource,
  session: Session,
  { permissive, name }: LoadManifestsOptions = {},
): Promise<LoadReport> {
  const load = await prepareLoad(source, session, { permissive });
  return editDatabase(file, { create: true, name, signal: session.signal }, load);
}

/** Returns what loads a source in a transaction; a cluster, which may be slow, is read before it. */
async function prepareLoad(
  source: ManifestSource,
  session: Session,
  { permissive }: Pick<LoadManifestsOptions, 'permissive'>,
): Promise<(database: Database) => Promise<LoadReport>> {
  switch (source.kind) {
    case 'manifests':
      return (database) => loadPackageManifests(database, source.directory, session, { permissive });
    case 'configmap':
      return (database) => loadConfigMap(database, source.file, session, { permissive });
    case 'cluster': {
      const label = describeId(getConfigMapId(source));
      const configMap = await readConfigMap(source, session);
      return (database) => loadConfigMapObject(database, configMap, session, { permissive, label });
    }
    case 'archives':
      return (database) => loadAppRegistry(database, source.directory, session, { permissive });
    case 'namespace': {
      const namespace = getAppRegistryNamespace(source);
      const options = { permissive, token: source.token };
      return (database) => loadAppRegistryNamespace(database, namespace, session, options);
    }
  }
}

type ClusterSource = Extract<ManifestSource, { kind: 'cluster' }>;
type NamespaceSource = Extract<ManifestSource, { kind: 'namespace' }>;

/** Returns the namespace of a source. Throws UsageError. */
export function getAppRegistryNamespace({ namespace, ...options }: NamespaceSource): AppRegistryNamespace {
  return parseAppRegistryNamespace(namespace, options);
}

/** Returns the identity of the ConfigMap of a source. */
export function getConfigMapId({ configMap: name, namespace }: ClusterSource): ObjectId {
  return { apiVersion: 'v1', kind: 'ConfigMap', namespace, name };
}

/** Reads a ConfigMap from a cluster. Throws OpmateError. */
async function readConfigMap(source: ClusterSource, session: Session): Promise<JsonObject> {
  const id = getConfigMapId(source);
  const fault = subdomainFault(id.name) ?? labelFault(id.namespace);
  if (fault !== undefined) throw new OpmateError('INVALID', fault, { subject: describeId(id) });
  const { kubectl } = openCluster(session, source.cluster);
  const [found] = (await getLive(kubectl, [id])).values();
  if (found !== undefined) return found;
  throw new OpmateError('NOT_FOUND', 'not found', {
    subject: describeId(id),
    hint: 'check the name, the namespace and the context',
  });
}
