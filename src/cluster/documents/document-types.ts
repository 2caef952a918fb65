import type { ProgressionProbe } from '../../bundle/object-set/probes.js';
import type { Report } from '../../bundle/report.js';
import type { JsonObject } from '../../document/json.js';
import type { ResolveRequest } from '../../graph/resolve.js';
import type { Manifest } from '../../kube/manifests.js';
import type { DocumentSource } from './source-fields.js';

/** A deployment as described in its document. */
export interface DeploymentDocument extends Pick<Report, 'findings' | 'warnings'> {
  manifest: Manifest;
  isPaused: boolean;
  /** Possible formats: one, or several to be detected from the files. */
  formats: readonly string[];
  /** Empty if not set. */
  installNamespace: string;
  watchNamespaces?: readonly string[];
  /** Values of a chart as text; an object for other formats. */
  config?: JsonObject;
  sources: readonly DocumentSource[];
  /** Refuse unsafe changes of CustomResourceDefinitions; default true. */
  isCrdUpgradeChecked?: boolean;
  /** Default time to wait until all objects are ready. */
  progressDeadlineMinutes?: number;
  /** Probes that must hold besides those of operator-controller, until a deployment is available. */
  healthChecks?: readonly ProgressionProbe[];
  /** Reasons for the bundle that was chosen in catalogs, one per line. */
  choice?: readonly string[];
}

/** Deployment whose bundle is resolved in catalogs before it is rendered. */
export type UnresolvedDeployment = Omit<DeploymentDocument, 'formats' | 'sources'>;

/** A ClusterExtension. */
export interface ExtensionDocument {
  deployment: UnresolvedDeployment;
  request: Omit<ResolveRequest, 'installed'>;
  /** Kubernetes selector of catalogs by their labels; empty for all. */
  selector: JsonObject;
}

/** A Subscription; the OperatorGroup of its namespace is in the namespaces to watch. */
export interface SubscriptionDocument {
  deployment: UnresolvedDeployment;
  packageName: string;
  /** CatalogSource. */
  source: { namespace: string; name: string };
  /** Annotations that OLM v0 adds to pods. */
  podAnnotations: Readonly<Record<string, string>>;
  /** It stays at the first bundle that is installed. */
  isManual: boolean;
}

/** A ClusterCatalog, or a CatalogSource, which has a namespace. */
export interface ClusterCatalogDocument {
  name: string;
  namespace: string;
  /** Empty if the document names no image. */
  reference: string;
  priority: number;
  labels: Record<string, string>;
}

/** Content of several documents, with findings that do not belong to a single deployment. */
export interface Documents extends Pick<Report, 'findings' | 'warnings'> {
  /** Deployments, sorted by namespace and name. */
  deployments: DeploymentDocument[];
  extensions: ExtensionDocument[];
  subscriptions: SubscriptionDocument[];
  operatorGroups: Manifest[];
  catalogs: ClusterCatalogDocument[];
  /** Other objects, including ConfigMaps and Secrets. */
  configMaps: Manifest[];
  secrets: Manifest[];
}
