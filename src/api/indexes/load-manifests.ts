import { getLive } from '../../cluster/live.js';
import { type ObjectId, describeId } from '../../cluster/objects.js';
import { OpmateError } from '../../core/errors.js';
import type { JsonObject } from '../../document/json.js';
import { labelFault, subdomainFault } from '../../kube/names.js';
import { type AppRegistryNamespace, loadAppRegistryNamespace } from '../../source/app-registry.js';
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
  /** Namespace of an app registry, with the token that is sent verbatim. */
  | { kind: 'namespace'; namespace: AppRegistryNamespace; token?: string | undefined };

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
  // Read before the transaction: a cluster may be slow.
  const liveConfigMap = source.kind === 'cluster' ? await readConfigMap(source, session) : undefined;
  const load = (database: Database): Promise<LoadReport> => {
    switch (source.kind) {
      case 'manifests':
        return loadPackageManifests(database, source.directory, session, { permissive });
      case 'configmap':
        return loadConfigMap(database, source.file, session, { permissive });
      case 'cluster': {
        const label = describeId(getConfigMapId(source));
        return loadConfigMapObject(database, liveConfigMap ?? {}, session, { permissive, label });
      }
      case 'archives':
        return loadAppRegistry(database, source.directory, session, { permissive });
      case 'namespace':
        return loadAppRegistryNamespace(database, source.namespace, session, {
          permissive,
          token: source.token,
        });
    }
  };
  return editDatabase(file, { create: true, name, signal: session.signal }, load);
}

type ClusterSource = Extract<ManifestSource, { kind: 'cluster' }>;

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
