import { revisionKeys } from '../../bundle/object-set/object-set.js';
import { groupByPhase } from '../../bundle/object-set/phases.js';
import { encodeGoJson, quoteGo, sortKeysDeep } from '../../document/go-json.js';
import { getObject, getText, getValue } from '../../document/json-fields.js';
import { asJson, isJsonObject, type JsonObject } from '../../document/json.js';
import { labelSelector } from '../../kube/meta-types.js';
import { deploymentConfigFields } from '../../kube/pod-types.js';
import { conform, pointerTo, struct } from '../../kube/struct.js';
import { type FindOffer, findClusterCatalog } from './catalogs.js';
import { checkCompatibility, checkReadiness, notFoundMessage } from './checks.js';
import { getKey, getName, getNamespace } from '../../kube/object.js';
import { type ClusterIndex, kinds } from './cluster-index.js';
import { collectObjects, lostFields, stripObject } from './collect.js';
import { findInstalled, type InstalledSubscription } from './installed.js';
import { type Acknowledgment, type MigrationCheck, migrationKeys } from './options.js';
import { cleanupSteps, type CleanupStep } from './cleanup.js';

/** Options of `convertSubscription`. */
export interface ConvertOptions {
  subscription: string;
  namespace: string;
  /** Name of the ClusterExtension, default that of the Subscription. */
  extension?: string | undefined;
  acknowledged: ReadonlySet<Acknowledgment>;
  deletesOperatorGroup?: boolean | undefined;
  /** Keep the fields of objects that the migration library loses, such as the type of a Secret. */
  keepsAllFields?: boolean | undefined;
}

/** Documents that replace a Subscription. */
export interface ConvertedSubscription {
  clusterExtension: JsonObject;
  clusterObjectSet: JsonObject;
  /** What happens to the objects of OLM v0, in order. */
  cleanup: CleanupStep[];
  notes: { severity: 'note' | 'warning'; message: string }[];
}

/**
 * Converts a Subscription to the ClusterExtension and ClusterObjectSet that the migration library creates. `error` says
 * in its words why it does not.
 */
export function convertSubscription(
  cluster: ClusterIndex,
  findOffer: FindOffer,
  options: ConvertOptions,
): ConvertedSubscription | { error: string } {
  const { namespace, acknowledged } = options;
  const name = options.extension ?? options.subscription;
  const subscription = cluster.find(kinds.subscription, options.subscription, namespace);
  if (subscription === undefined) {
    const missing = notFoundMessage('subscriptions.operators.coreos.com', options.subscription);
    return { error: `failed to profile operator: failed to get Subscription: ${missing}` };
  }
  const installed = findInstalled(cluster, subscription);
  if ('error' in installed) return { error: `failed to profile operator: ${installed.error}` };
  if (cluster.find(kinds.clusterExtension, name) !== undefined) {
    return { error: `ClusterExtension ${name} already exists` };
  }
  if (installed.sourceFault !== undefined) {
    return { error: `failed to get bundle info: ${installed.sourceFault}` };
  }
  const unready = countFailed(checkReadiness(cluster, subscription, acknowledged));
  if (unready > 0) return { error: `readiness checks failed (${unready} issues)` };
  const incompatible = countFailed(checkCompatibility(cluster, subscription, installed.csv, acknowledged));
  if (incompatible > 0) {
    return { error: `operator is not compatible with OLMv1 migration (${incompatible} issues found)` };
  }
  const catalog = findClusterCatalog(cluster, installed, findOffer);
  if ('error' in catalog) return { error: `failed to resolve ClusterCatalog: ${catalog.error}` };
  return createDocuments(cluster, findOffer, { installed, catalog: catalog.name, name, options });
}

function countFailed(checks: readonly MigrationCheck[]): number {
  return checks.filter(({ passed }) => !passed).length;
}

interface Conversion {
  installed: InstalledSubscription;
  catalog: string;
  name: string;
  options: ConvertOptions;
}

function createDocuments(
  cluster: ClusterIndex,
  findOffer: FindOffer,
  conversion: Conversion,
): ConvertedSubscription {
  const { installed, catalog, options } = conversion;
  const notes: ConvertedSubscription['notes'] = [];
  if (isJsonObject(getValue(installed.subscription, 'spec', 'config', 'selector'))) {
    const message =
      'Subscription spec.config.selector is not supported by OLMv1 and will be dropped during migration';
    notes.push({ severity: 'warning', message });
  }
  let { channel } = installed;
  if (channel === '') {
    const quoted = quoteGo(installed.packageName);
    channel = findOffer(catalog, installed.packageName)?.defaultChannel ?? '';
    const message =
      channel === ''
        ? `Could not determine defaultChannel for package ${quoted} — CE will consider all channels; verify upgrade behavior post-migration`
        : `Resolved default channel ${quoteGo(channel)} for package ${quoted} from ClusterCatalog ${catalog}`;
    notes.push({ severity: channel === '' ? 'warning' : 'note', message });
  }
  return {
    clusterExtension: createExtension(cluster, conversion, channel),
    clusterObjectSet: createSet(cluster, conversion),
    cleanup: cleanupSteps(cluster, installed, options.deletesOperatorGroup === true),
    notes,
  };
}

/** `spec.config` of a Subscription, with quantities in their canonical form. */
const subscriptionConfig = struct(deploymentConfigFields);
const backupConfig = struct({ 'selector?': pointerTo(labelSelector), ...deploymentConfigFields });

function createExtension(
  cluster: ClusterIndex,
  { installed, catalog, name, options }: Conversion,
  channel: string,
): JsonObject {
  const { subscription, packageName, version } = installed;
  const config = getValue(subscription, 'spec', 'config');
  const isManual = getText(subscription, 'spec', 'installPlanApproval') === 'Manual';
  const [group] = cluster.list(kinds.operatorGroup, { namespace: getNamespace(subscription) });
  const acknowledged = [...options.acknowledged].map((flag) => [
    `${migrationKeys.acknowledgedPrefix}${flag}`,
    'true',
  ]);
  const annotations: JsonObject = {
    [migrationKeys.fromSubscription]: getKey(subscription),
    [migrationKeys.subscriptionBackup]: encodeBackup(backUpSubscription(getObject(subscription, 'spec'))),
    ...(group !== undefined && {
      [migrationKeys.operatorGroupBackup]: encodeBackup(getObject(group, 'spec')),
    }),
    ...(Object.fromEntries(acknowledged) as JsonObject),
  };
  const inline = { deploymentConfig: asJson(conform(config ?? {}, subscriptionConfig).value) };
  return {
    ...kinds.clusterExtension,
    metadata: { name, annotations },
    spec: {
      namespace: getNamespace(subscription),
      source: {
        sourceType: 'Catalog',
        catalog: {
          packageName,
          ...(isManual && { version }),
          ...(channel !== '' && { channels: [channel] }),
          selector: { matchLabels: { 'olm.operatorframework.io/metadata.name': catalog } },
        },
      },
      ...(isJsonObject(config) && {
        config: { configType: 'Inline', inline },
      }),
    },
  };
}

function encodeBackup(value: JsonObject): string {
  return encodeGoJson(sortKeysDeep(value), { escapeHtml: true });
}

/** Returns the spec of a Subscription with the fields of its Go type. */
export function backUpSubscription(spec: JsonObject): JsonObject {
  const backup: JsonObject = {};
  for (const field of ['source', 'sourceNamespace', 'name']) backup[field] = getText(spec, field);
  for (const field of ['channel', 'startingCSV', 'installPlanApproval']) {
    const value = getText(spec, field);
    if (value !== '') backup[field] = value;
  }
  const config = getValue(spec, 'config');
  if (isJsonObject(config)) backup['config'] = asJson(conform(config, backupConfig).value);
  return backup;
}

function createSet(cluster: ClusterIndex, { installed, name, options }: Conversion): JsonObject {
  const { subscription, csv, packageName, version, image } = installed;
  const further = options.keepsAllFields === true ? lostFields : [];
  const objects = collectObjects(cluster, installed).map((object) => ({
    apiVersion: getText(object, 'apiVersion'),
    kind: getText(object, 'kind'),
    name: getName(object),
    namespace: getNamespace(object),
    content: stripObject(object, further),
  }));
  const collisionProtection = 'None';
  return {
    ...kinds.clusterObjectSet,
    metadata: {
      name: `${name}-1`,
      labels: { [revisionKeys.ownerKind]: 'ClusterExtension', [revisionKeys.ownerName]: name },
      annotations: {
        [migrationKeys.fromSubscription]: getKey(subscription),
        [revisionKeys.packageName]: packageName,
        [revisionKeys.bundleName]: getName(csv),
        [revisionKeys.bundleVersion]: version,
        ...(image !== '' && { [revisionKeys.bundleReference]: image }),
      },
    },
    spec: {
      lifecycleState: 'Active',
      revision: 1,
      collisionProtection,
      phases: groupByPhase(objects).map((phase) => ({
        name: phase.name,
        collisionProtection,
        objects: phase.objects.map(({ content }) => ({ object: content, collisionProtection })),
      })),
    },
  };
}
