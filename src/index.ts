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
export { type FilteredCatalog, filterCatalog } from './api/filter-catalog.js';
export { type CatalogFilter, emptyFilter } from './catalog/selection/catalog-filter.js';
export { readFilterFile } from './catalog/selection/filter-file.js';
export {
  type ConvertedTemplate,
  convertToTemplate,
  type ConvertToTemplateOptions,
} from './api/template/convert-template.js';
export { migrateCatalog } from './api/migrate-catalog.js';
export {
  type RenderedTemplate,
  renderTemplate,
  type RenderTemplateOptions,
} from './api/template/render-template.js';
export { inspectImage, type InspectedImage, listTags, readManifest } from './api/images/inspect-image.js';
export { type CatalogImageList, listImages } from './api/images/list-images.js';
export {
  ImageSizes,
  type MeasuredImages,
  planSelection,
  type SelectableCatalog,
  type SelectionPlan,
} from './api/selection/plan-selection.js';
export { type SelectionPick, type SelectionRequest } from './view/responses.js';
export { type ImageList, type ImageSelection } from './mirror/mapping/catalog-image-list.js';
export { encodeRegistryManifests, mapToRegistry } from './mirror/mapping/registry-images.js';
export { type BundleSourceOptions } from './api/bundle/bundle-sources.js';
export { type RenderedBundle, type RenderObjectsOptions, renderBundle } from './api/bundle/render-bundle.js';
export {
  type BundlePermissions,
  type ComparedPermissions,
  type PermissionsOptions,
  readBundlePermissions,
} from './api/bundle/bundle-permissions.js';
export { rightsBeyond } from './bundle/plain/rights/rights.js';
export { writeObjects } from './bundle/plain/write.js';
export {
  generateBundle,
  type GenerateBundleRequest,
  type GeneratedBundleFiles,
} from './api/bundle/generate-bundle.js';
export { buildBundle, type BuildBundleOptions, type BuiltBundle } from './api/bundle/build-bundle.js';
export { pushBundle, type PushBundleOptions, type PushedBundle } from './api/bundle/push-bundle.js';
export { collectGarbage, type CollectGarbageOptions } from './oci/layout/layout-garbage.js';
export { createPackage, type CreatePackageOptions } from './api/create-package.js';
export { catalogDockerfile } from './catalog/dockerfile.js';
export { checkCrdUpgrade, type CrdUpgrade } from './api/bundle/check-crd-upgrade.js';
export {
  extractBundle,
  type ExtractBundleOptions,
  type ExtractedBundle,
} from './api/bundle/extract-bundle.js';
export {
  type BundleSuccessors,
  type ChannelSuccessors,
  findSuccessors,
  type FindSuccessorsRequest,
  type UpgradeStep,
} from './api/bundle/find-successors.js';
export { type BundleImage, showBundle, type ShownBundle } from './api/bundle/show-bundle.js';
export { unpackBundle, type UnpackBundleOptions, type UnpackedBundle } from './api/bundle/unpack-bundle.js';
export {
  type DeploymentFile,
  renderDeployments,
  type RenderDeploymentsOptions,
} from './api/deployment/render-deployments.js';
export { renderPackage, type RenderPackageRequest } from './api/deployment/render-package.js';
export type { DeployedBundle, ResolveDocumentsOptions } from './api/deployment/resolve-documents.js';
export {
  type AppliedDeployment,
  applyDeployment,
  type ApplyDeploymentOptions,
  checkDeployments,
  planDeployment,
  type PlanDeploymentOptions,
} from './api/deployment/apply-deployment.js';
export { type Cluster, type ClusterOptions, openCluster } from './api/deployment/cluster.js';
export {
  type DeletedDeployment,
  deleteDeployment,
  type DeleteDeploymentOptions,
} from './api/deployment/delete-deployment.js';
export {
  readDeploymentStatus,
  waitForDeployment,
  type WaitForDeploymentOptions,
} from './api/deployment/deployment-status.js';
export { pruneDeployments } from './api/deployment/prune-deployments.js';
export {
  type DeploymentHistory,
  findInstalledBundle,
  readDeploymentHistory,
  rollBackDeployment,
  type RollBackDeploymentOptions,
} from './api/deployment/deployment-history.js';
export {
  watchDeployments,
  type WatchDeploymentsOptions,
  type WatchEvent,
} from './api/deployment/watch-deployments.js';
export type { ApplyReport } from './cluster/apply/apply.js';
export type { ApplyPlan } from './cluster/apply/plan-types.js';
export type { DeletionPlan } from './cluster/delete/plan-delete.js';
export type { DeploymentStatus } from './cluster/status.js';
export type { RenderSettings } from './cluster/documents/render-deployments.js';
export type { PinOptions } from './source/content/content-lock.js';
export type { SourceAllowances } from './cluster/documents/source-fields.js';
export { diffObjects } from './cluster/documents/diff.js';
export {
  createClusterObjectSet,
  type CreatedObjectSet,
  type CreateObjectSetOptions,
} from './api/deployment/create-object-set.js';
export type { FeatureGates, InstallRefusal } from './bundle/object-set/install-refusal.js';
export { validateOlmObject, type ValidateOlmObjectOptions } from './api/deployment/validate-object.js';
export type { ObjectValidation } from './kube/schema/validate-object.js';
export type { FieldCause } from './kube/schema/schema.js';
export {
  listOfferedPackages,
  type MigrationInput,
  type MigrationPlanner,
  planMigration,
  readClusterTexts,
  type OfferedPackages,
} from './api/cluster/migration.js';
export {
  type CapturedCluster,
  captureClusterFiles,
  captureRunningCluster,
  toSnapshotList,
} from './api/cluster/capture-cluster.js';
export {
  type ClusterMigration,
  migrateCluster,
  type MigrateClusterRequest,
} from './api/cluster/migrate-cluster.js';
export type { OperatorPlan } from './solve/migration/operator-plans.js';
export type { ConvertedSubscription, ConvertOptions } from './solve/migration/convert.js';
export type { MigrationVerdict } from './solve/migration/verdicts.js';
export type { MigratedCatalogSource, MigrateCatalogsOptions } from './solve/migration/catalog-sources.js';
export type { MigrationRollback } from './solve/migration/rollback.js';
export {
  createDeployment,
  type CreatedDeployment,
  createDeploymentObjectSet,
  type CreateDeploymentRequest,
  type DeploymentObjectSet,
  type DeploymentObjectSetOptions,
  encodeDeployment,
} from './api/deployment/create-deployment.js';
export type { NewDeployment } from './cluster/documents/new-deployment.js';
export {
  type CollisionProtection,
  computePhaseDigest,
  getCollisionProtection,
  groupByPhase,
  type Phase,
  type PhasedObject,
} from './bundle/object-set/phases.js';
export {
  defaultProbes,
  probeObject,
  type ProbeAssertion,
  type ProbeResult,
  type ProgressionProbe,
} from './bundle/object-set/probes.js';
export { type BundleValidation, validateBundle } from './api/bundle/validate-bundle.js';
export {
  type ResolveBundleRequest,
  type ResolvedBundle,
  resolveBundle,
} from './api/bundle/resolve-bundle.js';
export {
  evaluateConstraintRule,
  type EvaluatedConstraintRule,
} from './api/cluster/evaluate-constraint-rule.js';
export {
  type BlockingOperator,
  checkUpgradeable,
  type UpgradeableCondition,
} from './solve/openshift-gate.js';
export {
  type ClusterPrediction,
  type PlannedInstall,
  type PlannedRound,
  type PlannedSubscription,
  predictCluster,
  type PredictClusterRequest,
  type PredictedNamespace,
} from './api/cluster/predict-cluster.js';
export {
  type ClusterExplanation,
  explainClusterOperator,
  type ExplainOperatorRequest,
} from './api/cluster/explain-operator.js';
export type { OperatorExplanation } from './solve/v0/explain-operator.js';
export {
  type ClusterUpgradePlan,
  planClusterUpgrade,
  type PlanClusterUpgradeRequest,
} from './api/cluster/plan-cluster-upgrade.js';
export { diffPredictions, type SavedPrediction } from './api/cluster/diff-predictions.js';
export type { PlanDifference } from './solve/v0/compare-plans.js';
export { createUpgradeImageSets, type UpgradeImageSet } from './api/cluster/upgrade-image-sets.js';
export type { ChannelPosition, OperatorHop, UpgradeHop, UpgradeNote } from './solve/upgrade/upgrade-types.js';
export type { CatalogSourceContent } from './api/cluster/read-resolver-catalogs.js';
export { type ClusterSnapshot, readSnapshot, toSnapshot } from './cluster/snapshot.js';
export type { ClusterText } from './cluster/snapshot-files.js';
export type { ConflictLine } from './solve/v0/explain-conflict.js';
export type { PlanStep } from './solve/v0/install-plan.js';
export type { PredictionEnd } from './solve/v0/predict.js';
export type { RuleProperty } from './model/property-rule.js';
export { type NamedCatalog, parseNamedCatalog } from './api/named-catalogs.js';
export {
  archiveImageSet,
  mapArchives,
  mapImageSet,
  mirrorArchives,
  type MirrorArchivesOptions,
  mirrorImageSet,
  planMirror,
} from './api/mirror.js';
export type {
  MirrorArchive,
  MirrorMapping,
  MirrorOptions,
  MirrorPlan,
  MirrorResult,
  VerificationOptions,
} from './api/mirror/image-set-run.js';
export {
  type VerifiedArchive,
  verifyArchive,
  type VerifyArchiveOptions,
} from './api/images/verify-archive.js';
export {
  type ChannelReleases,
  listChannelReleases,
  listReleaseChannels,
  listReleaseVersions,
} from './api/mirror/list-releases.js';
export {
  deleteMirrored,
  type DeletedImages,
  type DeleteMirroredOptions,
  listMirrorDeletions,
  type ListMirrorDeletionsOptions,
  type MirrorDeletions,
} from './api/mirror/delete-images.js';
export { readMirrorStatus, type MirrorStatusOptions } from './api/mirror/mirror-status.js';
export type { LockStatus } from './mirror/lock/lock-status.js';
export {
  type FindLockOptions,
  findMirrorLock,
  type FoundLock,
  readNamedLock,
} from './api/mirror/find-lock.js';
export { captureImageSet, type CapturedImageSet, type CaptureImageSetOptions } from './api/mirror-capture.js';
export {
  mirrorCatalog,
  type MirrorCatalogOptions,
  type MirroredCatalog,
} from './api/mirror/mirror-catalog.js';
export type { CatalogMirrorPlan } from './mirror/mapping/catalog-mirror.js';
export { mirrorMappings, type MirrorMappingsOptions } from './api/mirror/mirror-mappings.js';
export { type MappingPair, parseMappings } from './mirror/mapping/mapping-file.js';
export { readMirrorInventory, type MirrorInventoryOptions } from './api/mirror-inventory.js';
export type { GrpcServerOptions } from './api/serve/grpc-server.js';
export type { HttpAddress, HttpServerOptions } from './api/serve/http-server.js';
export { publishCatalog, type PublishCatalogOptions } from './api/serve/publish-catalog.js';
export {
  buildServeCache,
  serveCatalog,
  type ServeCatalogOptions,
  type CatalogServer,
  serveIndex,
} from './api/serve/serve-catalog.js';
export {
  type ServedCatalogSet,
  serveCatalogs,
  type ServeCatalogsOptions,
} from './api/serve/serve-catalogs.js';
export type { ServedPage } from './api/view/page.js';
export {
  exportCatalogView,
  type ExportViewOptions,
  viewCatalog,
  type ViewCatalogOptions,
} from './api/view/view-catalog.js';
export type { Publication } from './serve/publish/publish-catalog.js';
export {
  buildCatalogImage,
  type BuildCatalogImageOptions,
  type BuiltCatalogImage,
} from './api/images/build-catalog-image.js';
export { type ImageOutput, readSigningKey, type StoredImage } from './api/images/image-output.js';
export { type VerifiedImage, verifyImages, type VerifyImagesOptions } from './api/images/verify-images.js';
export { compareLifecycles } from './api/lifecycle/compare-lifecycles.js';
export type { LifecycleChange } from './catalog/lifecycle/diff-lifecycles.js';
export { diffCatalogs, findBreaking } from './api/diff-catalogs.js';
export { type CatalogDiff, isSameCatalog } from './catalog/diff/diff.js';
export { diagnoseCatalog } from './api/diagnose-catalog.js';
export { gateCatalog, type GateCatalogOptions, type GatedCatalog } from './api/gate-catalog.js';
export { defaultGateProfile, type GateProfile } from './catalog/gate/gate-profile.js';
export { parseGateProfile } from './catalog/gate/profile-file.js';
export {
  addFragmentsToImage,
  type AddFragmentsOptions,
  deprecateInImage,
  type EditCatalogImageOptions,
  type EditedCatalogImage,
  removePackagesFromImage,
} from './api/images/edit-catalog-image.js';
export { chooseChecks } from './catalog/doctor/checks.js';
export { parseOpenShiftVersion } from './core/openshift-version.js';
export {
  addToCatalog,
  type AddBundlesOptions,
  type CatalogEdit,
  type CatalogRemoval,
  deprecateInCatalog,
  type EditCatalogOptions,
  injectLifecycles,
  type InjectLifecyclesOptions,
  removeFromCatalog,
  type RemoveFromCatalogOptions,
} from './api/edit-catalog.js';
export { type CatalogOutput } from './api/catalog-output.js';
export { loadCatalog, type LoadedCatalog } from './api/load-catalog.js';
export { type CatalogRows, listCatalog, type ListCatalogOptions } from './api/list-catalog.js';
export { readFacts } from './api/read-facts.js';
export { openIndex } from './api/indexes/open-index.js';
export { type PulledImage, pullImage } from './api/images/pull-image.js';
export { render, type RenderCatalogOptions } from './api/render-catalog.js';
export { type CatalogVerdict, validate, type ValidateOptions } from './api/validate-catalog.js';

export {
  CancelledError,
  DigestMismatchError,
  type ErrorCode,
  LimitError,
  OpmateError,
  RegistryError,
  UsageError,
} from './core/errors.js';
export type { EncodableJson, JsonObject, JsonValue, RawJson } from './document/json.js';
export type { LogFields, Logger, LogLevel, ProgressEvent } from './core/log.js';
export {
  formatReference,
  type LayoutReference,
  parseReference,
  type Reference,
  type RegistryReference,
} from './core/reference.js';

export type { Catalog, CatalogImage, MetasOptions } from './catalog/catalog.js';
export type { Meta } from './catalog/meta.js';
export { readDisplayNames } from './catalog/facts.js';
export type * from './model/declarative-config.js';
export { type CatalogFormat, type EncodableBlob, encodeBlob } from './model/encode.js';
export type * from './model/facts.js';
export type { CatalogDiagnostic } from './model/catalog-diagnostic.js';
export { type Diagnostic, formatDiagnostic, type Severity } from './core/diagnostic.js';
export {
  type BundleRow,
  type ChannelRow,
  listBundles,
  listChannels,
  listPackages,
  type PackageRow,
} from './graph/list.js';
export { drawGraph, type DrawOptions, type GraphDrawing } from './graph/mermaid.js';
export { type DrawnChannel, drawSvg, readDrawnChannels } from './view/graph-svg.js';
export { migrationLevels } from './model/migrations.js';
export { validateCatalog } from './graph/validate.js';

export type { OpenedIndex } from './sqlite/read/images.js';
export { createManifestFetcher, type PullFrom, stageBundles, type StageOptions } from './source/bundles.js';
export {
  type AddedBundles,
  addToIndex,
  type AddToDatabaseOptions,
  type AddToIndexOptions,
} from './api/indexes/add-to-index.js';
export {
  addToIndexImage,
  buildIndexImage,
  type EditedIndexImage,
  editIndexImage,
  type EditIndexImageOptions,
  type IndexDockerfile,
  type IndexImageOptions,
  type MadeIndexImage,
} from './api/indexes/index-image.js';
export {
  buildIndex,
  type BuildIndexOptions,
  type BuiltIndex,
  type OperatorSource,
} from './api/indexes/build-index.js';
export {
  loadManifests,
  type LoadManifestsOptions,
  type ManifestSource,
} from './api/indexes/load-manifests.js';
export { exportIndex, type ExportIndexOptions } from './api/indexes/export-index.js';
export { type AppRegistryNamespace, parseAppRegistryNamespace } from './source/app-registry.js';
export type { ExportReport } from './sqlite/read/export.js';
export type { AddMode } from './catalog/edit/plan-add.js';
export { addBundles, type AddOptions, type AddReport } from './sqlite/add/add.js';
export { BundleImageAlreadyAddedError, VersionAlreadyAddedError } from './sqlite/add/already-added.js';
export type { Database } from './sqlite/schema/database.js';
export { deleteBundle, deleteLatest } from './sqlite/remove/delete-bundle.js';
export { deprecateTruncate } from './sqlite/remove/deprecate.js';
export { createDatabase, editDatabase, type EditOptions, migrateDatabaseFile } from './sqlite/schema/edit.js';
export { type LoadReport, loadPackageManifests } from './sqlite/legacy/manifest-loader.js';
export { prunePackages, removePackages } from './sqlite/remove/remove.js';
export type { Stage, StagedBundle } from './sqlite/add/stage.js';
export { pruneStranded } from './sqlite/remove/stranded.js';

export { type BundleFiles, readBundleDirectory } from './bundle/read.js';
export { type RenderBundleOptions, renderBundleFiles } from './bundle/render.js';

export { type ArchiveLimits, defaultArchiveLimits } from './archive/limits.js';
export {
  type ExtractedLayers,
  extractLayers,
  type LayerInput,
  readLayers,
  type ReadLayersOptions,
} from './archive/layers.js';
export type { FileEntry, FileTree } from './archive/file-tree.js';
export { type Layer, layerOf, type TarInput } from './archive/tar-writer.js';
export type { Connection } from './oci/registry/connection.js';
export { copyImage, type CopyOptions, type CopyResult } from './oci/image/copy.js';
export { type Image, openImage } from './oci/image/image.js';
export { buildImage, type BuildImageOptions, type BuiltImage, pushImage } from './oci/image/image-builder.js';
export { type OpenedReference, type OpenedTarget, openReference, openTarget } from './oci/image/open.js';
export type { ManifestContent, Repository, WritableRepository } from './oci/registry/repository.js';
export type * from './oci/image/types.js';
export { readContents, type ImageContents } from './oci/image/contents.js';
export { openArchiveSets, type OpenedArchive } from './oci/archive-set/archive-set-reader.js';
export { readCatalogImages } from './mirror/catalog-images.js';
export { readImageSetConfiguration } from './mirror/image-set/image-set-config.js';
export {
  encodeInventory,
  parseInventory,
  type Inventory,
  type InventoryRepository,
} from './mirror/inventory/inventory.js';
export { encodeLock, planOf } from './mirror/lock/encode-lock.js';
export { type ImageSetLock } from './mirror/lock/lock.js';
export { parseLock } from './mirror/lock/parse-lock.js';
export { diffLocks, type LockDiff } from './mirror/lock/lock-diff.js';
export { transferImages } from './mirror/transfer/transfer.js';
export type { Transfer, TransferReport } from './mirror/transfer/transfer-types.js';
export {
  renderRepository,
  type RenderRepositoryOptions,
  type RenderedRepository,
} from './api/repo/render-repository.js';
export { checkRepository, type CheckRepositoryOptions } from './api/repo/check-repository.js';
export { readRepositoryChanges, type RepositoryChangesOptions } from './api/repo/repository-changes.js';
export {
  listOpenShiftVersions,
  type ListedOpenShiftVersions,
  type OpenShiftVersionsOptions,
} from './api/bundle/openshift-versions.js';
export type { RepositoryFinding } from './repo/checks/check.js';
export type { RepositoryChanges } from './repo/changes.js';
export { releaseBundle, type ReleaseBundleOptions, type RepositoryEdit } from './api/repo/release-bundle.js';
export {
  promoteCatalog,
  type PromoteCatalogOptions,
  type PromotedCatalog,
} from './api/repo/promote-catalog.js';
export {
  onboardOperator,
  type OnboardOperatorOptions,
  type OnboardedOperator,
} from './api/repo/onboard-operator.js';
export { readRepositoryStatus, type OutdatedPart } from './api/repo/repository-status.js';
export type { PromotedOperator } from './repo/promote.js';
export type { CatalogState } from './repo/write-catalogs.js';

export { type Registry, type RegistryOptions, startRegistry } from './serve/registry/registry.js';

export { type ServedCatalogs, readCatalogStatuses } from './api/served/catalog-statuses.js';
export {
  listServedPackages,
  type ServedPackage,
  type ServedPackagesOptions,
} from './api/served/catalog-packages.js';
export { type WaitOptions, waitForCatalogs } from './api/served/wait-for-catalogs.js';
export { checkServer, type CheckServerOptions } from './api/served/check-server.js';
export type { HealthStatus } from './client/health.js';
export { CatalogClient } from './client/catalog-client.js';
export type { ApiName } from './model/csv.js';
export type { BundleKey, CatalogChannel, CatalogEntry, CatalogPackage } from './client/catalog-queries.js';
export type { BlobContent, BlobQuery, CatalogBlob } from './client/catalog-blobs.js';
export type { ListedCatalog } from './client/catalog-listing.js';
export type { ClientOptions } from './client/client-options.js';
export type { GrpcCatalogClient, GrpcClientOptions } from './client/grpc-catalog-client.js';
export type { RegistryBundle, RegistryEntry } from './client/grpc-messages.js';
export type { ProvidedApi } from './serve/grpc/messages.js';
export type { HttpCatalogClient, HttpClientOptions, RefreshResult } from './client/http-catalog-client.js';
