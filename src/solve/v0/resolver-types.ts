import type { Version, VersionRange } from '../../core/semver.js';
import type { RemovedApi } from '../../bundle/plain/object-warnings.js';
import type { RuleProperty } from '../../model/property-rule.js';
import type { ApiName } from '../../model/csv.js';

/** Name and namespace of a CatalogSource. */
export interface CatalogKey {
  namespace: string;
  name: string;
}

/** Name of the source of the ClusterServiceVersions that a namespace has. */
export const existingCatalog = '@existing';

/** Properties of a bundle that the resolver compares. */
export interface BundleProperties {
  properties: readonly RuleProperty[];
  /** Valid `olm.package` properties. */
  packages: readonly { name: string; version: Version | undefined }[];
  /** Keys of `olm.gvk` properties, see `getApiKey`; repeated as often as the bundle has them. */
  apis: readonly ApiName[];
  labels: readonly string[];
  /** It has an `olm.deprecated` property. */
  isDeprecated: boolean;
}

/** A bundle in a channel of a catalog, or a ClusterServiceVersion of the namespace. */
export interface ResolverEntry extends BundleProperties {
  name: string;
  catalog: CatalogKey;
  /** Empty for an installed one without a known package. */
  package: string;
  /** Empty for an installed one. */
  channel: string;
  isDefaultChannel: boolean;
  replaces: string;
  skips: readonly string[];
  skipRange: VersionRange | undefined;
  version: Version | undefined;
  /** Version as the bundle has it. */
  versionText: string;
  /** Manifests of a bundle that a catalog contains; undefined for one with an image. */
  manifests: InlineManifests | undefined;
  /** APIs of its objects that some Kubernetes removed, if the catalog has the objects and these were read. */
  removedApis: readonly RemovedApi[];
  /** Values of `olm.maxOpenShiftVersion` properties as JSON text. */
  maxOpenShift: readonly string[];
  /** Supported install modes; undefined if the catalog does not have them. */
  installModes: readonly string[] | undefined;
  /** A Subscription has it as `status.installedCSV`. */
  isSubscribed: boolean;
}

/** Manifests that become steps without unpacking an image. */
export interface InlineManifests {
  /** Objects in order. */
  objects: readonly unknown[];
}

/** Content of a CatalogSource as the resolver uses it. */
export interface ResolverCatalog {
  key: CatalogKey;
  priority: number;
  entries: readonly ResolverEntry[];
  /** Reason why it has no content. */
  error?: string | undefined;
}
