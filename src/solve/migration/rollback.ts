import { OpmateError, getMessage } from '../../core/errors.js';
import { parseGoJson, quoteGo } from '../../document/go-json.js';
import { getObject, getObjects, getText } from '../../document/json-fields.js';
import { isJsonObject, type JsonObject } from '../../document/json.js';
import { dns1123LabelFaults, subdomainFaults } from '../../kube/names.js';
import { getLabels } from '../../kube/label-selector.js';
import { revisionKeys } from '../../bundle/object-set/object-set.js';
import { notFoundMessage } from './checks.js';
import { getAnnotation, getName } from '../../kube/object.js';
import { type ClusterIndex, kinds } from './cluster-index.js';
import { backUpSubscription } from './convert.js';
import { migrationKeys } from './options.js';

/** What a rollback restores and deletes. */
export interface MigrationRollback {
  /** Subscription to create. */
  subscription: JsonObject;
  /** Names of ClusterObjectSets to delete, keeping their objects. */
  deletedSets: string[];
  /** Names of ClusterObjectSets that stay. */
  remainingSets: string[];
}

/** Returns how an operator goes back to OLM v0; `error` says in the words of the migration library why it cannot. */
export function rollBackMigration(
  cluster: ClusterIndex,
  name: string,
  acknowledgesInstalled: boolean,
): MigrationRollback | { error: string } {
  const subject = `ClusterExtension ${name}`;
  const extension = cluster.find(kinds.clusterExtension, name);
  if (extension === undefined) {
    return {
      error: `failed to get ${subject}: ${notFoundMessage('clusterextensions.olm.operatorframework.io', name)}`,
    };
  }
  const isInstalled = getObjects(extension, 'status', 'conditions').some(
    (condition) => condition['type'] === 'Installed' && condition['status'] === 'True',
  );
  if (isInstalled && !acknowledgesInstalled) {
    return { error: `${subject} is Installed=True; pass --acknowledge-installed to confirm rollback` };
  }
  const restored = restoreSubscription(cluster, extension);
  return typeof restored === 'string' ? { error: restored } : selectSets(cluster, name, restored);
}

/** Returns the Subscription, or why it cannot be restored. */
function restoreSubscription(cluster: ClusterIndex, extension: JsonObject): JsonObject | string {
  const subject = `ClusterExtension ${getName(extension)}`;
  const backup = getAnnotation(extension, migrationKeys.subscriptionBackup);
  if (backup === '') {
    return `${subject} has no migration-subscription-backup annotation; cannot restore Subscription`;
  }
  const reference = getAnnotation(extension, migrationKeys.fromSubscription);
  if (reference === '') return `${subject} has no migrated-from-subscription annotation`;
  const spec = parseBackup(backup);
  if (typeof spec === 'string') return `failed to unmarshal subscription backup: ${spec}`;
  if (['name', 'source', 'sourceNamespace'].some((field) => getText(spec, field) === '')) {
    return 'subscription backup is missing required package, source, or sourceNamespace';
  }
  const [namespace = '', name = '', ...rest] = reference.split('/');
  const isValid =
    rest.length === 0 && dns1123LabelFaults(namespace).length === 0 && subdomainFaults(name).length === 0;
  if (!isValid) {
    const quoted = quoteGo(reference);
    const fault = `invalid namespace/name ref ${quoted}`;
    return `invalid migrated-from-subscription annotation ${quoted}: ${fault}`;
  }
  if (cluster.find(kinds.namespace, namespace) === undefined) {
    const missing = notFoundMessage('namespaces', namespace);
    return `source namespace ${quoteGo(namespace)} must exist before rollback can restore Subscription: ${missing}`;
  }
  return { ...kinds.subscription, metadata: { name, namespace }, spec: backUpSubscription(spec) };
}

/** Returns the spec, or why it cannot be read. */
function parseBackup(text: string): JsonObject | string {
  try {
    const spec = parseGoJson(text);
    return isJsonObject(spec) ? spec : 'json: expected an object';
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return getMessage(error);
  }
}

function selectSets(
  cluster: ClusterIndex,
  name: string,
  subscription: JsonObject,
): MigrationRollback | { error: string } {
  const first = `${name}-1`;
  const owner =
    getLabels(cluster.find(kinds.clusterObjectSet, first) ?? {}).get(revisionKeys.ownerName) ?? '';
  if (owner !== '' && owner !== name) {
    return { error: `migration ClusterObjectSet ${first} belongs to another extension ${quoteGo(owner)}` };
  }
  const sets = cluster.list(kinds.clusterObjectSet);
  const isDeleted = (set: JsonObject): boolean =>
    getName(set) === first || getText(getObject(set, 'metadata', 'labels'), revisionKeys.ownerName) === name;
  const deletedSets = sets.filter(isDeleted).map(getName);
  const remainingSets = sets.filter((set) => !isDeleted(set)).map(getName);
  return { subscription, deletedSets, remainingSets };
}
