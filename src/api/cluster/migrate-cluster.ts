import { decodeMeta } from '../../catalog/blob.js';
import { type ClusterText, readClusterFiles, readClusterManifests } from '../../cluster/snapshot-files.js';
import { mapConcurrent } from '../../core/concurrency.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { getText } from '../../document/json-fields.js';
import { asJson, type JsonObject } from '../../document/json.js';
import { migrateCatalogSources, type MigratedCatalogSource } from '../../solve/migration/catalog-sources.js';
import type { FindOffer, OfferedPackage } from '../../solve/migration/catalogs.js';
import { getName } from '../../kube/object.js';
import { ClusterIndex, kinds } from '../../solve/migration/cluster-index.js';
import { objectKinds } from '../../solve/migration/collect.js';
import { type OperatorPlan, planOperators } from '../../solve/migration/operator-plans.js';
import type { Session } from '../../source/session.js';
import { withCatalog } from '../open-catalog.js';
import { listOfferedPackages } from './migration.js';
import { type CatalogSourceContent, catalogsAtOnce } from './read-resolver-catalogs.js';

/** Input of `migrateCluster`. */
export interface MigrateClusterRequest {
  /** Files, directories and texts with the objects of the cluster. */
  snapshot: readonly (string | ClusterText)[];
  /** Content of catalogs by name of the CatalogSource or ClusterCatalog, or by image. */
  catalogs: ReadonlyMap<string, CatalogSourceContent>;
}

/** Plan for the migration of a cluster from OLM v0 to OLM v1. */
export interface ClusterMigration {
  operators: OperatorPlan[];
  /** Results for the CatalogSources. */
  catalogSources: MigratedCatalogSource[];
  /** ClusterCatalogs to create or change first. */
  clusterCatalogs: JsonObject[];
  /** Faults of the snapshot; everything else was read. */
  findings: Diagnostic[];
}

/**
 * Plans the migration of all operators of a cluster to OLM v1, on the assumption that the ClusterCatalogs of its
 * CatalogSources are created first. Throws OpmateError for unreadable files and catalogs, and LIMIT.
 */
export async function migrateCluster(
  { snapshot, catalogs }: MigrateClusterRequest,
  session: Session,
): Promise<ClusterMigration> {
  const { workingDirectory, signal } = session;
  const objects: JsonObject[] = [];
  const findings: Diagnostic[] = [];
  const names = [...Object.values(kinds), ...objectKinds].map(({ kind }) => kind);
  await readClusterFiles(snapshot, names, { workingDirectory, signal }, (file) => {
    const read = readClusterManifests(file);
    findings.push(...read.findings);
    objects.push(...read.manifests.map((manifest) => manifest.load()));
  });
  const offers = await readOffers(catalogs, session);
  const cluster = new ClusterIndex(objects);
  const { results, clusterCatalogs } = migrateCatalogSources(cluster, {});
  const serving = clusterCatalogs.map((catalog) => assumeServing(cluster, catalog));
  const after = new ClusterIndex([...objects, ...serving]);
  const findOffer: FindOffer = (name, packageName) => {
    const catalog = after.find(kinds.clusterCatalog, name);
    const image = getText(catalog, 'spec', 'source', 'image', 'ref');
    const sources = results.filter(({ clusterCatalog }) => clusterCatalog === name);
    const aliases = sources.flatMap(({ catalogSource, namespace }) => [
      `${namespace}/${catalogSource}`,
      catalogSource,
    ]);
    return [name, image, ...aliases]
      .map((alias) => offers.get(alias)?.get(packageName))
      .find((offer) => offer !== undefined);
  };
  const changed = clusterCatalogs.filter((catalog) => isChanged(cluster, catalog));
  return {
    operators: planOperators(after, findOffer),
    catalogSources: results,
    clusterCatalogs: changed,
    findings,
  };
}

/** A ClusterCatalog that is created will serve; an existing one keeps its status. */
function assumeServing(cluster: ClusterIndex, catalog: JsonObject): JsonObject {
  const existing = cluster.find(kinds.clusterCatalog, getName(catalog));
  const status =
    existing === undefined ? { conditions: [{ type: 'Serving', status: 'True' }] } : existing['status'];
  return { ...catalog, ...(status !== undefined && { status }) };
}

function isChanged(cluster: ClusterIndex, catalog: JsonObject): boolean {
  return cluster.find(kinds.clusterCatalog, getName(catalog)) === undefined;
}

async function readOffers(
  catalogs: MigrateClusterRequest['catalogs'],
  session: Session,
): Promise<Map<string, ReadonlyMap<string, OfferedPackage>>> {
  const read = await mapConcurrent([...catalogs], catalogsAtOnce, async ([name, content]) => {
    const blobs: JsonObject[] = [];
    if ('blobs' in content) blobs.push(...content.blobs);
    else for (const reference of content.references) blobs.push(...(await readBlobs(reference, session)));
    return [name, listOfferedPackages(blobs)] as const;
  });
  return new Map(read);
}

/** Returns the parts of a catalog that name packages, channels and versions. */
async function readBlobs(reference: string, session: Session): Promise<JsonObject[]> {
  return withCatalog(reference, session, async ({ catalog }) => {
    const blobs: JsonObject[] = [];
    for await (const meta of catalog.metas({ signal: session.signal })) {
      const decoded = decodeMeta(meta);
      if (decoded.kind === 'package') {
        const { name, defaultChannel } = decoded.blob;
        blobs.push(asJson({ schema: 'olm.package', name, defaultChannel }));
      } else if (decoded.kind === 'channel') {
        blobs.push({ schema: 'olm.channel', package: decoded.blob.package, name: decoded.blob.name });
      } else if (decoded.kind === 'bundle') blobs.push(describeBundle(decoded.blob));
    }
    return blobs;
  });
}

function describeBundle(bundle: {
  package: string;
  properties: readonly { type: string; value: unknown }[];
}): JsonObject {
  const properties = bundle.properties.filter(({ type }) => type === 'olm.package');
  return {
    schema: 'olm.bundle',
    package: bundle.package,
    properties: JSON.parse(JSON.stringify(properties)) as JsonObject[],
  };
}
