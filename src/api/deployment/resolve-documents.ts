import { createFault, createWarning, type Diagnostic } from '../../core/diagnostic.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { tryParse } from '../../core/semver.js';
import type {
  ClusterCatalogDocument,
  DeploymentDocument,
  Documents,
  ExtensionDocument,
  SubscriptionDocument,
  UnresolvedDeployment,
} from '../../cluster/documents/document-types.js';
import type { InventoryPlace } from '../../cluster/inventory.js';
import type { JsonObject } from '../../document/json.js';
import { type BundleVersion, parseBundleVersion } from '../../graph/bundle-version.js';
import { meetsSelector, selectorFault } from '../../kube/label-selector.js';
import { locateIn } from '../../kube/manifests.js';
import type { Session } from '../../source/session.js';
import { describeChoice, resolveBundle } from '../bundle/resolve-bundle.js';
import { type PlannedInstall, type PredictedNamespace, predictCluster } from '../cluster/predict-cluster.js';
import { type NamedCatalog, readNamedCatalog } from '../named-catalogs.js';

/** Bundle of a deployment that is on the cluster. */
export interface DeployedBundle {
  name: string;
  version: string;
}

/** Catalogs for documents of OLM, and what is installed. */
export interface ResolveDocumentsOptions {
  /** Catalogs besides those of the documents; one of the same name replaces the reference of a document. */
  catalogs?: readonly NamedCatalog[] | undefined;
  /** Returns the installed bundle of a ClusterExtension, which limits upgrades to those of the catalog. Default: none. */
  findInstalled?: ((place: InventoryPlace) => Promise<DeployedBundle | undefined>) | undefined;
}

/**
 * Resolves the bundles of ClusterExtensions as OLM v1 does, and those of Subscriptions as OLM v0 does, dependencies
 * included. Returns all deployments, sorted by namespace and name; unresolved ones have findings. Throws OpmateError for
 * a catalog that cannot be read.
 */
export async function resolveDocuments(
  documents: Documents,
  session: Session,
  options: ResolveDocumentsOptions,
): Promise<DeploymentDocument[]> {
  const deployments = [...documents.deployments];
  for (const extension of documents.extensions) {
    deployments.push(await resolveExtension(extension, documents, session, options));
  }
  const namespaces = new Set(documents.subscriptions.map(({ deployment }) => deployment.installNamespace));
  for (const namespace of sortedByBytes(namespaces)) {
    deployments.push(...(await resolveNamespace(namespace, documents, session, options)));
  }
  return deployments.sort(
    ({ manifest: a }, { manifest: b }) =>
      compareBytes(a.namespace, b.namespace) || compareBytes(a.name, b.name),
  );
}

/** Returns a deployment of a bundle image. */
function withImage(
  deployment: UnresolvedDeployment,
  image: string,
  path: readonly string[],
  choice: readonly string[],
): DeploymentDocument {
  const source = { path, destination: '', source: { kind: 'image' as const, ref: image } };
  return { ...deployment, formats: ['registry-v1'], sources: [source], choice };
}

/** Returns a deployment that is not rendered. */
function withFindings(
  deployment: UnresolvedDeployment,
  findings: readonly Diagnostic[],
  warnings: readonly Diagnostic[] = [],
): DeploymentDocument {
  return {
    ...deployment,
    formats: ['registry-v1'],
    sources: [],
    findings: [...deployment.findings, ...findings],
    warnings: [...deployment.warnings, ...warnings],
  };
}

/** Returns the catalogs of documents and options; options take precedence. */
function mergeCatalogs(
  documents: readonly ClusterCatalogDocument[],
  named: readonly NamedCatalog[],
): NamedCatalog[] {
  const merged = new Map<string, NamedCatalog>(
    documents.map(({ name, reference, priority, labels }) => [name, { name, reference, priority, labels }]),
  );
  for (const catalog of named) {
    const { priority = 0, labels = {} } = merged.get(catalog.name) ?? {};
    merged.set(catalog.name, {
      ...catalog,
      priority: catalog.priority === 0 ? priority : catalog.priority,
      labels: { ...labels, ...catalog.labels },
    });
  }
  return [...merged.values()];
}

const catalogPath = ['spec', 'source', 'catalog'];

async function resolveExtension(
  { deployment, request, selector }: ExtensionDocument,
  documents: Documents,
  session: Session,
  { catalogs: named = [], findInstalled }: ResolveDocumentsOptions,
): Promise<DeploymentDocument> {
  const { manifest, installNamespace } = deployment;
  if (deployment.findings.length > 0) return withFindings(deployment, []);
  const refuse = (code: string, problem: string, hint?: string): DeploymentDocument =>
    withFindings(deployment, [createFault(code, problem, { ...locateIn(manifest, catalogPath), hint })]);
  const fault = selectorFault(selector);
  if (fault !== undefined) return refuse('invalid-value', `spec.source.catalog.selector: ${fault}`);
  const clusterCatalogs = documents.catalogs.filter(({ namespace }) => namespace === '');
  const catalogs = mergeCatalogs(clusterCatalogs, named);
  if (catalogs.length === 0) return refuse('no-catalog', 'no catalog', catalogHint);
  const selected = catalogs.filter(({ labels }) => meetsSelector(new Map(Object.entries(labels)), selector));
  if (selected.length === 0)
    return refuse('no-catalog', 'spec.source.catalog.selector: no catalog has such labels', catalogHint);
  const installed = await findInstalled?.({ name: manifest.name, namespace: installNamespace });
  const { resolution } = await resolveBundle(
    { ...request, installed: installed && toResolved(installed) },
    selected,
    session,
  );
  const { outcome, chosen, reason, deprecations } = resolution;
  if (chosen === undefined || outcome !== 'resolved') return refuse('resolution', reason);
  const warnings = deprecations.map(({ kind, name, message }) =>
    createWarning('deprecated', `deprecated ${kind} ${name}: ${message}`, locateIn(manifest, catalogPath)),
  );
  const resolved = withImage(deployment, chosen.image, catalogPath, describeChoice(resolution, chosen));
  return { ...resolved, warnings: [...resolved.warnings, ...warnings] };
}

const catalogHint = 'add its document, or specify it as NAME=REF';

/** Returns an installed bundle as resolution has it; without a readable version that of the catalogs. */
export function toResolved({ name, version }: DeployedBundle): {
  name: string;
  version: BundleVersion | undefined;
} {
  return { name, version: tryParse(parseBundleVersion, version) };
}

/** Resolves the Subscriptions of a namespace together, as OLM v0 does. */
async function resolveNamespace(
  namespace: string,
  documents: Documents,
  session: Session,
  { catalogs: named = [] }: ResolveDocumentsOptions,
): Promise<DeploymentDocument[]> {
  const subscriptions = documents.subscriptions.filter(
    ({ deployment }) => deployment.installNamespace === namespace,
  );
  const sources = findSources(subscriptions, documents.catalogs, named);
  const unknown = subscriptions.filter(({ source }) => !sources.has(toKey(source)));
  const isSound = subscriptions.every(({ deployment }) => deployment.findings.length === 0);
  if (!isSound || unknown.length > 0) {
    return subscriptions.map((subscription) => {
      const { deployment, source } = subscription;
      const place = { ...locateIn(deployment.manifest, ['spec', 'source']), hint: catalogHint };
      const problem = `spec.source: unknown catalog ${toKey(source)}`;
      const isUnknown = unknown.includes(subscription) && source.name !== '';
      return withFindings(deployment, isUnknown ? [createFault('no-catalog', problem, place)] : []);
    });
  }
  const ownGroups = documents.operatorGroups.filter((group) => group.namespace === namespace);
  const objects = [
    ...[...sources.values()].map(toCatalogSource),
    // What is on a cluster does not matter: the documents describe the whole state.
    ...subscriptions.map(({ deployment }): JsonObject => ({ ...deployment.manifest.load(), status: {} })),
    ...ownGroups.map((group) => group.load()),
  ];
  const global = subscriptions.find(({ source }) => source.namespace !== namespace)?.source.namespace;
  const { namespaces } = await predictCluster(
    {
      snapshot: { objects, findings: [] },
      catalogs: new Map(
        [...sources].map(([key, { reference }]) => [key, { references: [reference] }] as const),
      ),
      namespaces: [namespace],
      ...(global !== undefined && { globalNamespace: global }),
    },
    session,
  );
  const [prediction] = namespaces;
  return prediction === undefined ? [] : toDeployments(prediction, subscriptions, sources, session);
}

function toKey({ namespace, name }: { namespace: string; name: string }): string {
  return `${namespace}/${name}`;
}

/** Returns the CatalogSources of Subscriptions with their content, by `NAMESPACE/NAME`. */
function findSources(
  subscriptions: readonly SubscriptionDocument[],
  documents: readonly ClusterCatalogDocument[],
  named: readonly NamedCatalog[],
): Map<string, ClusterCatalogDocument> {
  const sources = new Map<string, ClusterCatalogDocument>();
  for (const { source } of subscriptions) {
    const document = documents.find((catalog) => toKey(catalog) === toKey(source));
    const given = named.find(({ name }) => name === source.name);
    const reference = given?.reference ?? document?.reference ?? '';
    const priority = document?.priority ?? given?.priority ?? 0;
    if (reference !== '') sources.set(toKey(source), { ...source, reference, priority, labels: {} });
  }
  return sources;
}

function toCatalogSource({ name, namespace, priority }: ClusterCatalogDocument): JsonObject {
  return {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'CatalogSource',
    metadata: { name, namespace },
    spec: { sourceType: 'grpc', priority },
  };
}

/** Returns the deployments of the bundles that a namespace has at the end of a prediction. */
async function toDeployments(
  { rounds: all, findings, alternatives }: PredictedNamespace,
  subscriptions: readonly SubscriptionDocument[],
  sources: ReadonlyMap<string, ClusterCatalogDocument>,
  session: Session,
): Promise<DeploymentDocument[]> {
  const [first] = subscriptions;
  if (first === undefined) return [];
  // With manual approval, nobody approves a further plan.
  const rounds = subscriptions.some(({ isManual }) => isManual) ? all.slice(0, 1) : all;
  const { file, line, column } = locateIn(first.deployment.manifest, ['spec']);
  const placed = findings.map((finding): Diagnostic => ({ ...finding, file, line, column }));
  const warnings = placed.filter(({ severity }) => severity !== 'error');
  if (alternatives.length > 0) {
    const problem = 'the order of Subscriptions decides which bundles OLM chooses';
    warnings.push(createWarning('uncertain', problem, locateIn(first.deployment.manifest, ['spec'])));
  }
  if (rounds.some(({ outcome }) => outcome !== 'resolved') || rounds.length === 0) {
    const errors = placed.filter(({ severity }) => severity === 'error');
    return subscriptions.map(({ deployment }, index) =>
      index === 0 ? withFindings(deployment, errors, warnings) : withFindings(deployment, []),
    );
  }
  const installs = new Map(
    rounds.flatMap((round) => round.installs).map((install) => [install.package, install] as const),
  );
  const generated = rounds.flatMap(({ newSubscriptions }) => newSubscriptions);
  const deployments: DeploymentDocument[] = [];
  for (const { deployment, packageName } of subscriptions) {
    const install = installs.get(packageName);
    installs.delete(packageName);
    deployments.push(await toDeployment(deployment, install, sources, session));
  }
  for (const install of installs.values()) {
    const { deployment, podAnnotations: annotations } = first;
    const name = generated.find((subscription) => subscription.package === install.package)?.name;
    const dependency = {
      ...deployment,
      manifest: { ...deployment.manifest, name: name ?? install.package },
      config: { deploymentConfig: { annotations } },
      warnings: [],
    };
    deployments.push(await toDeployment(dependency, install, sources, session));
  }
  return deployments.map((deployment, index) =>
    index === 0 ? { ...deployment, warnings: [...deployment.warnings, ...warnings] } : deployment,
  );
}

async function toDeployment(
  deployment: UnresolvedDeployment,
  install: PlannedInstall | undefined,
  sources: ReadonlyMap<string, ClusterCatalogDocument>,
  session: Session,
): Promise<DeploymentDocument> {
  const place = locateIn(deployment.manifest, ['spec', 'name']);
  if (install === undefined)
    return withFindings(deployment, [createFault('resolution', 'OLM installs nothing for it', place)]);
  const image = await findImage(install, sources, session);
  if (image === '') {
    const problem = `bundle ${install.name} has no image`;
    return withFindings(deployment, [createFault('unsupported', problem, place)]);
  }
  return withImage(
    deployment,
    image,
    ['spec', 'name'],
    [
      `${install.name}, in channel ${install.channel}, from catalog ${install.catalog}`,
      `image ${image}`,
      install.reason,
    ],
  );
}

async function findImage(
  { catalog, package: packageName, name }: PlannedInstall,
  sources: ReadonlyMap<string, ClusterCatalogDocument>,
  session: Session,
): Promise<string> {
  const source = sources.get(catalog);
  if (source === undefined) return '';
  const { content } = await readNamedCatalog(source, packageName, session);
  return content.bundles.find((bundle) => bundle.name === name)?.image ?? '';
}
