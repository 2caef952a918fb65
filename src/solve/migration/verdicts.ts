import { parseGoJson, quoteGo } from '../../document/go-json.js';
import { getText } from '../../document/json-fields.js';
import type { JsonObject } from '../../document/json.js';
import { type FindOffer, findClusterCatalog } from './catalogs.js';
import { checkCompatibility, checkReadiness } from './checks.js';
import { getAnnotation, getKey, getName, getNamespace } from '../../kube/object.js';
import { type ClusterIndex, kinds } from './cluster-index.js';
import { findInstalled } from './installed.js';
import { type Acknowledgment, type MigrationCheck, migrationKeys } from './options.js';
import { readProperties } from './properties.js';

/** Verdict on the migration of one Subscription, in the words of the migration library. */
export interface MigrationVerdict {
  /** Name of the Subscription; of an operator that is migrated already, its ClusterExtension. */
  subscription: string;
  /** Empty for an operator that is migrated already. */
  namespace: string;
  package: string;
  installedCSV: string;
  version: string;
  state: string;
  status: 'Eligible' | 'Ineligible' | 'Conflict' | 'AlreadyMigrated';
  reason: string;
  checks: MigrationCheck[];
  warnings: string[];
}

/**
 * Returns a verdict on every Subscription by namespace and name, then on ClusterExtensions without theirs; with `only`, on
 * one Subscription.
 */
export function judgeMigration(
  cluster: ClusterIndex,
  findOffer: FindOffer,
  acknowledged: ReadonlySet<Acknowledgment>,
  only?: { subscription: string; namespace: string },
): MigrationVerdict[] {
  const extensions = new Map(
    cluster
      .list(kinds.clusterExtension)
      .map((extension) => [getAnnotation(extension, migrationKeys.fromSubscription), getName(extension)])
      .filter((entry): entry is [string, string] => entry[0] !== ''),
  );
  const subscriptions = cluster.list(kinds.subscription);
  const present = new Set(subscriptions.map(getKey));
  const isWanted = (subscription: JsonObject): boolean =>
    only === undefined || getKey(subscription) === `${only.namespace}/${only.subscription}`;
  const judged = subscriptions
    .filter(isWanted)
    .map((subscription) =>
      extensions.has(getKey(subscription))
        ? conflict(subscription)
        : judge(cluster, subscription, findOffer, acknowledged),
    );
  const migrated = only === undefined ? [...extensions].filter(([reference]) => !present.has(reference)) : [];
  return [...judged, ...migrated.map(([reference, name]) => alreadyMigrated(reference, name))];
}

function describe(subscription: JsonObject): MigrationVerdict {
  return {
    subscription: getName(subscription),
    namespace: getNamespace(subscription),
    package: getText(subscription, 'spec', 'name'),
    installedCSV: getText(subscription, 'status', 'installedCSV'),
    version: '',
    state: getText(subscription, 'status', 'state'),
    status: 'Ineligible',
    reason: '',
    checks: [],
    warnings: [],
  };
}

function conflict(subscription: JsonObject): MigrationVerdict {
  const reason = 'both Subscription and annotated ClusterExtension exist; resolve with cleanup or rollback';
  return { ...describe(subscription), status: 'Conflict', reason };
}

function alreadyMigrated(reference: string, extension: string): MigrationVerdict {
  return {
    ...describe({}),
    subscription: extension,
    state: `ClusterExtension ${extension} (migrated from ${reference})`,
    status: 'AlreadyMigrated',
    reason: `ClusterExtension ${extension} exists with migrated-from-subscription annotation; Subscription is gone`,
  };
}

function judge(
  cluster: ClusterIndex,
  subscription: JsonObject,
  findOffer: FindOffer,
  acknowledged: ReadonlySet<Acknowledgment>,
): MigrationVerdict {
  const verdict = describe(subscription);
  const checks = checkReadiness(cluster, subscription, acknowledged);
  const installed = findInstalled(cluster, subscription);
  if ('error' in installed) return { ...verdict, checks, reason: `failed to get CSV: ${installed.error}` };
  const { csv, version, packageName, channel, sourceFault } = installed;
  checks.push(...checkCompatibility(cluster, subscription, csv, acknowledged));
  if (sourceFault !== undefined) {
    checks.push({ name: 'CatalogSource type', passed: false, message: sourceFault });
  }
  const failed = checks.filter(({ passed }) => !passed).length;
  if (failed > 0) return { ...verdict, version, checks, reason: `${failed} check(s) failed` };
  const catalog = findClusterCatalog(cluster, { packageName, version, channel }, findOffer);
  const quoted = quoteGo(packageName);
  const name = 'Catalog availability';
  if ('error' in catalog) {
    const message = `No ClusterCatalog found for package ${quoted}; run migrate-catalogs-v0-to-v1 first: ${catalog.error}`;
    checks.push({ name, passed: false, message });
    return {
      ...verdict,
      version,
      checks,
      reason: `package ${quoted} not found in any serving ClusterCatalog`,
    };
  }
  checks.push({ name, passed: true, message: `package available in ClusterCatalog ${catalog.name}` });
  return {
    ...verdict,
    version,
    checks,
    status: 'Eligible',
    reason: 'passes all readiness, compatibility, and catalog-availability checks',
    warnings: dependentsWarning(cluster, packageName),
  };
}

function dependentsWarning(cluster: ClusterIndex, packageName: string): string[] {
  const dependents = cluster
    .list(kinds.subscription)
    .filter((subscription) => {
      if (getText(subscription, 'spec', 'name') === packageName) return false;
      const installed = getText(subscription, 'status', 'installedCSV');
      const csv = cluster.find(kinds.csv, installed, getNamespace(subscription));
      return csv !== undefined && requiresPackage(csv, packageName);
    })
    .map(getKey);
  if (dependents.length === 0) return [];
  const listed = `[${dependents.join(' ')}]`;
  return [
    `other operator(s) may depend on package ${quoteGo(packageName)}: ${listed} — verify they remain functional after migration`,
  ];
}

function requiresPackage(csv: JsonObject, packageName: string): boolean {
  return readProperties(csv).properties.some(
    ({ type, text }) =>
      type === 'olm.package.required' &&
      text !== '' &&
      getText(parseGoJson(text), 'packageName') === packageName,
  );
}
