import { type AppRegistryNamespace, loadAppRegistryNamespace } from '../../source/app-registry.js';
import type { Session } from '../../source/session.js';
import { loadAppRegistry } from '../../sqlite/legacy/appregistry.js';
import { loadConfigMap } from '../../sqlite/legacy/configmap.js';
import { type LoadReport, loadPackageManifests } from '../../sqlite/legacy/manifest-loader.js';
import type { Database } from '../../sqlite/schema/database.js';
import { editDatabase } from '../../sqlite/schema/edit.js';

export { ManifestsError } from '../../sqlite/legacy/manifest-loader.js';

/** Source of bundles in the formats that preceded bundle images. */
export type ManifestSource =
  /** Directory of package manifests. */
  | { kind: 'manifests'; directory: string }
  /** File with a ConfigMap that holds package manifests. */
  | { kind: 'configmap'; file: string }
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
  const load = (database: Database): Promise<LoadReport> => {
    switch (source.kind) {
      case 'manifests':
        return loadPackageManifests(database, source.directory, session, { permissive });
      case 'configmap':
        return loadConfigMap(database, source.file, session, { permissive });
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
