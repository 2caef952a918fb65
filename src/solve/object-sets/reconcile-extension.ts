import { revisionKeys } from '../../bundle/object-set/object-set.js';
import { quoteGo } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { getObject, getText, getTexts, getValue } from '../../document/json-fields.js';
import { tryParse } from '../../core/semver.js';
import { parseBundleVersion } from '../../graph/bundle-version.js';
import { resolvePackage } from '../../graph/resolve.js';
import { getLabels, meetsSelector } from '../../kube/label-selector.js';
import { getAnnotation, getName } from '../../kube/object.js';
import { type Condition, getConditions, hasCondition, withConditions, withStatus } from './conditions.js';
import type { SimulatedCluster } from './simulated-cluster.js';

const ownFinalizers = [
  'olm.operatorframework.io/cleanup-unpack-cache',
  'olm.operatorframework.io/cleanup-contentmanager-cache',
];
const unknownDeprecation = 'deprecation status unknown: catalog data unavailable';

/**
 * Writes the status of a ClusterExtension from its revisions, on a cluster whose ClusterCatalogs do not serve and whose
 * images cannot be pulled. (Source: operator-controller.)
 */
export function reconcileExtension(extension: JsonObject, cluster: SimulatedCluster): void {
  const sets = listRevisions(extension, cluster);
  const active = sets.filter((set) => getText(set, 'spec', 'lifecycleState') === 'Active');
  const installed = active.findLast((set) => hasCondition(set, 'Succeeded'));
  const rolling = active.filter((set) => !hasCondition(set, 'Succeeded'));
  const error = findError(extension, { installed, rolling }, cluster);
  const metadata = getObject(extension, 'metadata');
  const present = getTexts(metadata, 'finalizers');
  const finalizers = [...present, ...ownFinalizers.filter((name) => !present.includes(name))];
  let next: JsonObject = { ...extension, metadata: { ...metadata, finalizers } };
  next = withConditions(next, ...describeDeprecation(installed), describeInstalled(installed, rolling));
  next = withStatus(next, {
    install: installed === undefined ? null : { bundle: describeBundle(installed) },
  });
  if (error !== undefined) next = withConditions(next, ['Progressing', 'True', 'Retrying', error]);
  else if (installed !== undefined) {
    const conditions = getConditions(installed).filter(([type]) =>
      ['Available', 'Progressing'].includes(type),
    );
    next = withConditions(
      withStatus(next, { activeRevisions: [{ name: getName(installed), conditions: [] }] }),
      ...conditions,
    );
  }
  cluster.replace(next);
}

function listRevisions(extension: JsonObject, cluster: SimulatedCluster): JsonObject[] {
  const revisionOf = (set: JsonObject): number => Number(getValue(set, 'spec', 'revision'));
  return cluster
    .list('ClusterObjectSet')
    .filter((set) => getText(set, 'metadata', 'labels', revisionKeys.ownerName) === getName(extension))
    .sort((a, b) => revisionOf(a) - revisionOf(b));
}

function describeBundle(set: JsonObject): JsonObject {
  const release = getAnnotation(set, revisionKeys.bundleRelease);
  return {
    name: getAnnotation(set, revisionKeys.bundleName),
    version: getAnnotation(set, revisionKeys.bundleVersion),
    ...(release !== '' && { release }),
  };
}

function describeDeprecation(installed: JsonObject | undefined): Condition[] {
  const conditions = ['Deprecated', 'PackageDeprecated', 'ChannelDeprecated'].map((type): Condition => [
    type,
    'Unknown',
    'DeprecationStatusUnknown',
    unknownDeprecation,
  ]);
  const bundle: Condition =
    installed === undefined
      ? ['BundleDeprecated', 'Unknown', 'Absent', 'no bundle installed yet']
      : ['BundleDeprecated', 'Unknown', 'DeprecationStatusUnknown', unknownDeprecation];
  return [...conditions, bundle];
}

function describeInstalled(installed: JsonObject | undefined, rolling: readonly JsonObject[]): Condition {
  if (installed !== undefined) {
    const image = getAnnotation(installed, revisionKeys.bundleReference);
    return ['Installed', 'True', 'Succeeded', `Installed bundle ${image} successfully`];
  }
  const newest = rolling.at(-1);
  const isFailed =
    newest === undefined ||
    getConditions(newest).some(([type, , reason]) => type === 'Progressing' && reason === 'Retrying');
  return ['Installed', 'False', isFailed ? 'Failed' : 'Absent', 'No bundle installed'];
}

/** Returns why the extension does not progress; undefined if it stays with the installed bundle. */
function findError(
  extension: JsonObject,
  { installed, rolling }: { installed: JsonObject | undefined; rolling: readonly JsonObject[] },
  cluster: SimulatedCluster,
): string | undefined {
  const newest = rolling.at(-1);
  // A revision that rolls out is finished before anything is resolved.
  if (newest !== undefined) {
    const [name, version, image] = [
      revisionKeys.bundleName,
      revisionKeys.bundleVersion,
      revisionKeys.bundleReference,
    ].map((key) => getAnnotation(newest, key));
    return `error for resolved bundle ${quoteGo(name ?? '')} with version ${quoteGo(version ?? '')}: error copying image: initializing source docker://${image}: connection refused`;
  }
  const catalog = getObject(extension, 'spec', 'source', 'catalog');
  const packageName = getText(catalog, 'packageName');
  const versionRange = getText(catalog, 'version');
  const [first] = cluster
    .list('ClusterCatalog')
    .filter((object) => meetsSelector(getCatalogLabels(object), getObject(catalog, 'selector')));
  const installedVersion =
    installed === undefined ? '' : getAnnotation(installed, revisionKeys.bundleVersion);
  if (first !== undefined) {
    const name = quoteGo(getName(first));
    const prefix = `error walking catalogs: error getting package ${quoteGo(packageName)} from catalog ${name}`;
    return `${prefix}: catalog ${name} is not being served`;
  }
  if (installed !== undefined && ['', installedVersion].includes(versionRange)) return undefined;
  const version = tryParse(parseBundleVersion, installedVersion);
  return resolvePackage(
    {
      packageName,
      versionRange,
      channels: getTexts(catalog, 'channels'),
      policy: 'catalog-provided',
      ...(installed !== undefined &&
        version !== undefined && {
          installed: { name: getAnnotation(installed, revisionKeys.bundleName), version },
        }),
    },
    [],
  ).reason;
}

/** Returns the labels of a catalog, with its name, which a webhook adds. */
function getCatalogLabels(catalog: JsonObject): Map<string, string> {
  return new Map([
    ...getLabels(catalog),
    ['olm.operatorframework.io/metadata.name', getName(catalog)] as const,
  ]);
}
