/** Image labels by which a catalog or bundle image tells what it carries. */
export const imageLabels = {
  configs: 'operators.operatorframework.io.index.configs.v1',
  database: 'operators.operatorframework.io.index.database.v1',
  bundlePackage: 'operators.operatorframework.io.bundle.package.v1',
  bundleManifests: 'operators.operatorframework.io.bundle.manifests.v1',
  bundleMetadata: 'operators.operatorframework.io.bundle.metadata.v1',
} as const;
