import { maxOpenShiftProperty } from '../../core/openshift-version.js';
import { OpmateError } from '../../core/errors.js';
import { pushTo } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { formatVersion } from '../../core/semver.js';
import type { JsonObject } from '../../document/json.js';
import { getObjects, getText } from '../../document/json-fields.js';
import { readRawProperties } from '../v0/bundle-properties.js';
import { type CsvState, type SubscriptionState, listExisting, readNamespace } from '../v0/namespace-state.js';
import type { InstalledOperator, OperatorNamespace } from './upgrade-types.js';

/** An OperatorGroup of all namespaces, for a snapshot without one. */
export const assumedGroup = { name: '', excludesGlobal: false, failsForward: false, targets: [] };

/**
 * Returns the operators of all namespaces among objects of a cluster, by namespace, without copies. An OperatorGroup is
 * assumed where the objects have none.
 */
export function readOperatorNamespaces(objects: readonly JsonObject[]): OperatorNamespace[] {
  const byNamespace = new Map<string, JsonObject[]>();
  for (const object of objects) pushTo(byNamespace, getText(object, 'metadata', 'namespace'), object);
  return [...byNamespace]
    .filter(([, own]) => own.some(({ kind }) => kind === 'ClusterServiceVersion'))
    .map(([namespace, own]) => {
      const read = readNamespace(namespace, own);
      const groups = read.operatorGroups.length === 0 ? [assumedGroup] : read.operatorGroups;
      const state = {
        ...read,
        csvs: read.csvs.filter(({ isCopied }) => !isCopied),
        operatorGroups: groups,
      };
      return {
        state,
        maxOpenShift: new Map(state.csvs.map((csv) => [csv.name, readMaximum(csv)])),
        notUpgradeable: readConditions(own),
      };
    })
    .sort((a, b) => compareBytes(a.state.namespace, b.state.namespace));
}

/** Returns the operators of a namespace. */
export function listInstalledOperators(namespace: OperatorNamespace): InstalledOperator[] {
  const { subscriptions, csvs } = namespace.state;
  const byCsv = new Map<string, SubscriptionState>();
  for (const subscription of subscriptions.toReversed()) byCsv.set(subscription.installedCsv, subscription);
  return csvs.map((csv) => toOperator(csv, byCsv.get(csv.name), namespace));
}

function toOperator(
  csv: CsvState,
  subscription: SubscriptionState | undefined,
  { maxOpenShift, notUpgradeable }: OperatorNamespace,
): InstalledOperator {
  return {
    namespace: csv.namespace,
    subscription: subscription?.name ?? '',
    package: subscription?.package ?? findPackage(csv),
    channel: subscription?.channel ?? '',
    isManual: subscription?.isManual === true,
    csv: csv.name,
    version: csv.version,
    versionText: formatVersion(csv.version),
    maxOpenShift: maxOpenShift.get(csv.name) ?? [],
    notUpgradeable: notUpgradeable.get(csv.name),
  };
}

function findPackage(csv: CsvState): string {
  const state = { namespace: csv.namespace, subscriptions: [], csvs: [csv] };
  try {
    return listExisting({ ...state, operatorGroups: [assumedGroup] })[0]?.package ?? '';
  } catch (error) {
    if (error instanceof OpmateError) return '';
    throw error;
  }
}

/** Returns the values of the property; for a broken annotation a text that is no version, as it blocks too. */
function readMaximum({ annotation }: CsvState): string[] {
  if (annotation === undefined) return [];
  try {
    return readRawProperties(annotation)
      .filter(({ type }) => type === maxOpenShiftProperty)
      .map(({ text }) => text);
  } catch (error) {
    if (error instanceof OpmateError) return [error.message];
    throw error;
  }
}

/** Returns the messages of OperatorConditions that say `Upgradeable=False`; overrides take precedence. */
export function readConditions(objects: readonly JsonObject[]): Map<string, string> {
  const isUpgradeable = (condition: JsonObject): boolean => condition['type'] === 'Upgradeable';
  const messages = new Map<string, string>();
  for (const object of objects) {
    if (object['kind'] !== 'OperatorCondition') continue;
    const override = getObjects(object, 'spec', 'overrides').find(isUpgradeable);
    const own = [...getObjects(object, 'spec', 'conditions'), ...getObjects(object, 'status', 'conditions')];
    const condition = override ?? own.find(isUpgradeable);
    if (condition?.['status'] !== 'False') continue;
    const message = getText(condition, 'message') || getText(condition, 'reason') || 'without a reason';
    messages.set(getText(object, 'metadata', 'name'), message);
  }
  return messages;
}
