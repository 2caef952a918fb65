/**
 * The library behind the commands. Calls are typed, stream where results are large, stop when their AbortSignal fires,
 * and throw OpmateError; nothing prints or exits.
 *
 *     const session = await openSession();
 *
 * A session has the environment and directories of the process unless its options name others.
 */
export { openSession } from './api/session.js';
export type { Session, SessionOptions } from './source/session.js';
export { filterCatalog } from './api/filter-catalog.js';
export { convertToTemplate } from './api/template/convert-template.js';
export { migrateCatalog } from './api/migrate-catalog.js';
export { renderTemplate } from './api/template/render-template.js';
export { inspectImage, listTags, readManifest } from './api/images/inspect-image.js';
export { listImages } from './api/images/list-images.js';
export { mapCatalogImages, writeMirrorManifests } from './api/images/map-images.js';
export { generateDockerfile } from './api/images/generate-dockerfile.js';
export { renderBundle } from './api/bundle/render-bundle.js';
export { createInstaller, readBundlePermissions } from './api/bundle/bundle-permissions.js';
export { writeObjects } from './bundle/plain/write.js';
export { generateBundle } from './api/bundle/generate-bundle.js';
export { buildBundle } from './api/bundle/build-bundle.js';
export { pushBundle } from './api/bundle/push-bundle.js';
export { collectGarbage } from './oci/layout/layout-garbage.js';
export { createPackage } from './api/create-package.js';
export { checkCrdUpgrade } from './api/bundle/check-crd-upgrade.js';
export { extractBundle } from './api/bundle/extract-bundle.js';
export { findSuccessors } from './api/bundle/find-successors.js';
export { showBundle } from './api/bundle/show-bundle.js';
export { unpackBundle } from './api/bundle/unpack-bundle.js';
export { renderDeployments } from './api/deployment/render-deployments.js';
export { renderPackage } from './api/deployment/render-package.js';
export { applyDeployment, checkDeployments, planDeployment } from './api/deployment/apply-deployment.js';
export { type Cluster, openCluster } from './api/deployment/cluster.js';
export { deleteDeployment } from './api/deployment/delete-deployment.js';
export { readDeploymentStatus, waitForDeployment } from './api/deployment/deployment-status.js';
export { pruneDeployments } from './api/deployment/prune-deployments.js';
export {
  findInstalledBundle,
  readDeploymentHistory,
  rollBackDeployment,
} from './api/deployment/deployment-history.js';
export { watchDeployments } from './api/deployment/watch-deployments.js';
export { diffRender } from './api/deployment/deployment-objects.js';
export { captureClusterFiles, captureRunningCluster, toSnapshotList } from './api/cluster/capture-cluster.js';
export { migrateCluster } from './api/cluster/migrate-cluster.js';
export {
  createDeployment,
  createDeploymentObjectSet,
  encodeDeployment,
} from './api/deployment/create-deployment.js';
export { validateBundle } from './api/bundle/validate-bundle.js';
export { resolveBundle } from './api/bundle/resolve-bundle.js';
export { predictCluster } from './api/cluster/predict-cluster.js';
export { explainClusterOperator } from './api/cluster/explain-operator.js';
export { planClusterUpgrade } from './api/cluster/plan-cluster-upgrade.js';
export { diffPredictions } from './api/cluster/diff-predictions.js';
export { createUpgradeImageSets } from './api/cluster/upgrade-image-sets.js';
export { parseNamedCatalog } from './api/named-catalogs.js';
export {
  archiveImageSet,
  mapArchives,
  mapImageSet,
  mirrorArchives,
  mirrorImageSet,
  planMirror,
} from './api/mirror.js';
export { verifyArchive } from './api/images/verify-archive.js';
export { listDefaultCatalogs, listCatalogOperators } from './api/listing/list-operators.js';
export {
  listChannelReleases,
  listReleaseChannels,
  listReleaseVersions,
} from './api/listing/list-releases.js';
export { deleteMirrored, listMirrorDeletions, writeDeleteList } from './api/mirror/delete-images.js';
export { scheduleMirror } from './api/cluster/schedule-mirror.js';
export { listPrunable, pruneMirror } from './api/mirror/prune-mirror.js';
export { readMirrorStatus } from './api/mirror/mirror-status.js';
export { diffNamedLocks, findMirrorLock } from './api/mirror/find-lock.js';
export { captureImageSet } from './api/mirror-capture.js';
export { mirrorCatalog } from './api/mirror/mirror-catalog.js';
export { mirrorMappings, readMappings } from './api/mirror/mirror-mappings.js';
export { readMirrorInventory } from './api/mirror-inventory.js';
export { publishCatalog } from './api/serve/publish-catalog.js';
export { buildServeCache, serveCatalog, serveIndex } from './api/serve/serve-catalog.js';
export { serveCatalogs } from './api/serve/serve-catalogs.js';
export { viewMirror } from './api/view/view-mirror.js';
export { exportCatalogView, viewCatalog } from './api/view/view-catalog.js';
export { buildCatalogImage } from './api/images/build-catalog-image.js';
export { verifyImages } from './api/images/verify-images.js';
export { addBundlesToImage } from './api/images/add-bundles-to-image.js';
export { mergeIndexImages } from './api/images/merge-indexes.js';
export { compareLifecycles } from './api/lifecycle/compare-lifecycles.js';
export { diffCatalogs, findBreaking } from './api/diff-catalogs.js';
export { diagnoseCatalog } from './api/diagnose-catalog.js';
export { gateCatalog } from './api/gate-catalog.js';
export {
  addFragmentsToImage,
  deprecateInImage,
  removePackagesFromImage,
} from './api/images/edit-catalog-image.js';
export { addToCatalog, deprecateInCatalog, injectLifecycles, removeFromCatalog } from './api/edit-catalog.js';
export { loadCatalog } from './api/load-catalog.js';
export { listCatalog } from './api/listing/list-catalog.js';
export { readFacts } from './api/read-facts.js';
export { openIndex } from './api/indexes/open-index.js';
export { render } from './api/render-catalog.js';
export { validate } from './api/validate-catalog.js';
export { CancelledError, type ErrorCode, OpmateError, UsageError } from './core/errors.js';
export type { JsonObject, JsonValue } from './document/json.js';
export type { LogFields, Logger, LogLevel, ProgressEvent } from './core/log.js';
export { parseReference, type Reference } from './core/reference.js';
export type { Catalog } from './catalog/catalog.js';
export type { Meta } from './catalog/meta.js';
export type { PackageBlob, ChannelBlob, BundleBlob, DeprecationsBlob } from './model/declarative-config.js';
export type { CatalogFacts } from './model/facts.js';
export type { CatalogDiagnostic } from './model/catalog-diagnostic.js';
export { type Diagnostic, formatDiagnostic, type Severity } from './core/diagnostic.js';
export { drawGraph } from './graph/mermaid.js';
export { drawSvg, readDrawnChannels } from './view/graph-svg.js';
export { addToIndex } from './api/indexes/add-to-index.js';
export { addToIndexImage, buildIndexImage, editIndexImage } from './api/indexes/index-image.js';
export { buildIndex } from './api/indexes/build-index.js';
export { loadManifests } from './api/indexes/load-manifests.js';
export { exportIndex } from './api/indexes/export-index.js';
export { createDatabase, migrateDatabaseFile } from './sqlite/schema/edit.js';
export { editIndex } from './api/indexes/edit-index.js';
export { copyReference } from './api/images/copy-reference.js';
export { renderRepository } from './api/repo/render-repository.js';
export { checkRepository } from './api/repo/check-repository.js';
export { readRepositoryChanges } from './api/repo/repository-changes.js';
export { listOpenShiftVersions } from './api/bundle/openshift-versions.js';
export { releaseBundle } from './api/repo/release-bundle.js';
export { promoteCatalog } from './api/repo/promote-catalog.js';
export { onboardOperator } from './api/repo/onboard-operator.js';
export { readRepositoryStatus } from './api/repo/repository-status.js';
export { type Registry, startRegistry } from './serve/registry/registry.js';
export { readCatalogStatuses } from './api/served/catalog-statuses.js';
export { listServedPackages } from './api/served/catalog-packages.js';
export { listServedMetas } from './api/served/catalog-metas.js';
export { waitForCatalogs } from './api/served/wait-for-catalogs.js';
export { checkServer } from './api/served/check-server.js';
export { CatalogClient } from './client/catalog-client.js';
