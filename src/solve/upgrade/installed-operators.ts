import { maxOpenShiftProperty } from '../../core/openshift-version.js';
import { OpmateError } from '../../core/errors.js';
import { formatVersion } from '../../core/semver.js';
import type { JsonObject } from '../../document/json.js';
import { getObjects, getText } from '../../document/json-fields.js';
import { readRawProperties } from '../v0/bundle-properties.js';
import { type CsvState, type SubscriptionState, listExisting, readNamespace } from '../v0/namespace-state.js';
import type { InstalledOperator } from './upgrade-types.js';

/** Returns the operators of all namespaces among objects of a cluster, without copies. */
export function listInstalledOperators(objects: readonly JsonObject[]): InstalledOperator[] {
  const namespaces = new Set(
    objects
      .filter((object) => object['kind'] === 'ClusterServiceVersion')
      .map((object) => getText(object, 'metadata', 'namespace')),
  );
  return [...namespaces].flatMap((namespace) => {
    const state = readNamespace(namespace, objects);
    return state.csvs
      .filter(({ isCopied }) => !isCopied)
      .map((csv) => toOperator(csv, state.subscriptions, objects));
  });
}

function toOperator(
  csv: CsvState,
  subscriptions: readonly SubscriptionState[],
  objects: readonly JsonObject[],
): InstalledOperator {
  const subscription = subscriptions.find(({ installedCsv }) => installedCsv === csv.name);
  return {
    namespace: csv.namespace,
    subscription: subscription?.name ?? '',
    package: subscription?.package ?? findPackage(csv),
    channel: subscription?.channel ?? '',
    isManual: subscription?.isManual === true,
    csv: csv.name,
    version: csv.version,
    versionText: formatVersion(csv.version),
    maxOpenShift: readMaximum(csv),
    notUpgradeable: findCondition(csv, objects),
  };
}

function findPackage(csv: CsvState): string {
  const state = { namespace: csv.namespace, subscriptions: [], csvs: [csv] };
  const group = { name: '', excludesGlobal: false, failsForward: false, targets: [] };
  try {
    return listExisting({ ...state, operatorGroups: [group] })[0]?.package ?? '';
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

/** Returns the message of an OperatorCondition that says `Upgradeable=False`; overrides take precedence. */
function findCondition({ namespace, name }: CsvState, objects: readonly JsonObject[]): string | undefined {
  const object = objects.find(
    (candidate) =>
      candidate['kind'] === 'OperatorCondition' &&
      getText(candidate, 'metadata', 'name') === name &&
      getText(candidate, 'metadata', 'namespace') === namespace,
  );
  const isUpgradeable = (condition: JsonObject): boolean => condition['type'] === 'Upgradeable';
  const override = getObjects(object, 'spec', 'overrides').find(isUpgradeable);
  const own = [...getObjects(object, 'spec', 'conditions'), ...getObjects(object, 'status', 'conditions')];
  const condition = override ?? own.find(isUpgradeable);
  if (condition?.['status'] !== 'False') return undefined;
  return getText(condition, 'message') || getText(condition, 'reason') || 'without a reason';
}
