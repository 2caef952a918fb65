import { findSetHazards } from '../../bundle/object-set/hazards.js';
import { createWarning, type Diagnostic } from '../../core/diagnostic.js';
import { getObjects, getText, getTexts } from '../../document/json-fields.js';
import type { JsonObject } from '../../document/json.js';
import type { FindOffer } from './catalogs.js';
import type { CleanupStep } from './cleanup.js';
import { getKey, getName } from '../../kube/object.js';
import { ClusterIndex, kinds } from './cluster-index.js';
import { collectObjects, listMissingSecrets } from './collect.js';
import { convertSubscription } from './convert.js';
import { findInstalled } from './installed.js';
import type { Acknowledgment, MigrationCheck } from './options.js';
import { readProperties } from './properties.js';
import { rollBackMigration } from './rollback.js';
import { judgeMigration, type MigrationVerdict } from './verdicts.js';

/** A check that fails, with its rule and what to do. */
interface MigrationBlocker extends MigrationCheck {
  /** Rule of the migration library, `C1` to `C10`; empty for its preconditions. */
  rule: string;
  remedy: string;
}

/** Plan for one operator. */
export interface OperatorPlan {
  /** `NAMESPACE/NAME` of the Subscription; the ClusterExtension of a migrated operator. */
  operator: string;
  package: string;
  version: string;
  state: 'ready' | 'ready with changes' | 'blocked' | 'migrated' | 'conflict';
  reason: string;
  /** Failed checks. */
  blockers: MigrationBlocker[];
  /** Conditions to accept, for an operator that is ready with changes. */
  acknowledge: Acknowledgment[];
  /** Problems that the migration library does not see. */
  warnings: Diagnostic[];
  /** Documents to apply, in order; none if the operator is blocked. */
  documents: JsonObject[];
  /** What to do, in order. */
  steps: string[];
  /** What a rollback does, in order, with the Subscription that it restores. */
  rollback: { steps: string[]; documents: JsonObject[] };
}

const scope = {
  rule: 'C1',
  remedy: 'accept that the operator watches all namespaces: acknowledge watch-scope-change',
};
const steady = {
  rule: 'C8',
  remedy: 'wait until the operator is installed and healthy, or acknowledge not-steady-state',
};

const rules: Readonly<Record<string, { rule: string; remedy: string }>> = {
  'ClusterObjectSet API': { rule: '', remedy: 'install OLM v1 with its experimental definitions' },
  'Subscription state': steady,
  'Installed CSV': { rule: '', remedy: 'wait until the Subscription has an installed version' },
  'CSV health': steady,
  'Not a dependency': { rule: 'C9', remedy: 'migrate the operator that depends on it, then delete this one' },
  'Package uniqueness': { rule: '', remedy: 'delete the other Subscription of the package' },
  'OperatorGroup exists': { rule: 'C1', remedy: 'create an OperatorGroup for all namespaces' },
  'No scoped ServiceAccount': {
    rule: 'C6',
    remedy: 'accept that the operator gets the rights of its bundle: acknowledge scoped-serviceaccount',
  },
  'No namespace selector': scope,
  'AllNamespaces mode': scope,
  'Namespace scope change': scope,
  'AllNamespaces install mode supported': {
    rule: 'C1a',
    remedy: 'upgrade to a version that can watch all namespaces, or keep the operator on OLM v0',
  },
  'No dependency resolution': {
    rule: 'C2',
    remedy: 'keep the operator on OLM v0: OLM v1 does not install dependencies',
  },
  'No APIService definitions': {
    rule: 'C3',
    remedy: 'keep the operator on OLM v0 until a version serves its API without an APIService',
  },
  'No OperatorCondition usage': {
    rule: 'C4',
    remedy: 'accept that OLM v1 ignores its conditions: acknowledge operator-condition',
  },
  'OLMv0-API RBAC': {
    rule: 'C5',
    remedy: 'accept that the operator may rely on OLM v0: acknowledge olmv0-api-access',
  },
  'CatalogSource type': { rule: 'C10', remedy: 'serve its catalog from an image' },
  'Catalog availability': {
    rule: 'C7',
    remedy: 'create a ClusterCatalog with the installed version and channel, and specify its content',
  },
};

const allAcknowledgments: readonly Acknowledgment[] = [
  'watch-scope-change',
  'operator-condition',
  'olmv0-api-access',
  'scoped-serviceaccount',
  'not-steady-state',
];

/** Returns a plan for every Subscription, and for operators that are migrated already. */
export function planOperators(cluster: ClusterIndex, findOffer: FindOffer): OperatorPlan[] {
  const strict = judgeMigration(cluster, findOffer, new Set());
  const lenient = judgeMigration(cluster, findOffer, new Set(allAcknowledgments));
  return strict.map((verdict, index) => planOperator(cluster, findOffer, verdict, lenient[index] ?? verdict));
}

function planOperator(
  cluster: ClusterIndex,
  findOffer: FindOffer,
  verdict: MigrationVerdict,
  lenient: MigrationVerdict,
): OperatorPlan {
  const failed = verdict.checks.filter(({ passed }) => !passed);
  const state = getState(verdict, lenient);
  // What fails even if all is accepted, such as a missing catalog, is known from the second verdict only.
  const further = state === 'blocked' ? lenient.checks.filter(({ passed }) => !passed) : [];
  const names = new Set(failed.map(({ message }) => message));
  const blockers = [...failed, ...further.filter(({ message }) => !names.has(message))];
  const acknowledge = state === 'ready with changes' ? neededFor(cluster, findOffer, verdict) : [];
  const plan: OperatorPlan = {
    operator:
      verdict.namespace === '' ? verdict.subscription : `${verdict.namespace}/${verdict.subscription}`,
    package: verdict.package,
    version: lenient.version,
    state,
    reason: verdict.reason,
    blockers: blockers.map((check) => ({ ...check, ...(rules[check.name] ?? { rule: '', remedy: '' }) })),
    acknowledge,
    warnings: lenient.warnings.map((problem) =>
      createWarning('dependents', problem, { subject: getSubject(verdict) }),
    ),
    documents: [],
    steps: [],
    rollback: { steps: [], documents: [] },
  };
  return state === 'ready' || state === 'ready with changes'
    ? { ...plan, ...createPlanDocuments(cluster, findOffer, verdict, acknowledge, plan.warnings) }
    : plan;
}

function getSubject({ namespace, subscription }: MigrationVerdict): string {
  return `Subscription ${namespace}/${subscription}`;
}

function getState(verdict: MigrationVerdict, lenient: MigrationVerdict): OperatorPlan['state'] {
  if (verdict.status === 'Conflict') return 'conflict';
  if (verdict.status === 'AlreadyMigrated') return 'migrated';
  if (verdict.status === 'Eligible') return 'ready';
  return lenient.status === 'Eligible' ? 'ready with changes' : 'blocked';
}

/** Returns the conditions without which the operator is not eligible. */
function neededFor(
  cluster: ClusterIndex,
  findOffer: FindOffer,
  { namespace, subscription }: MigrationVerdict,
): Acknowledgment[] {
  return allAcknowledgments.filter((left) => {
    const others = new Set(allAcknowledgments.filter((one) => one !== left));
    const [verdict] = judgeMigration(cluster, findOffer, others, { subscription, namespace });
    return verdict?.status !== 'Eligible';
  });
}

function createPlanDocuments(
  cluster: ClusterIndex,
  findOffer: FindOffer,
  verdict: MigrationVerdict,
  acknowledge: readonly Acknowledgment[],
  warnings: readonly Diagnostic[],
): Partial<OperatorPlan> {
  const { subscription, namespace } = verdict;
  const converted = convertSubscription(cluster, findOffer, {
    subscription,
    namespace,
    acknowledged: new Set(acknowledge),
    keepsAllFields: true,
  });
  if ('error' in converted) return { state: 'blocked', reason: converted.error };
  const { clusterExtension, clusterObjectSet, cleanup, notes } = converted;
  const subject = getSubject(verdict);
  return {
    documents: [clusterObjectSet, clusterExtension],
    warnings: [
      ...warnings,
      ...notes.map(({ message }) => createWarning('converted', message, { subject })),
      ...findHidden(cluster, verdict),
      ...findSetHazards(clusterObjectSet),
    ],
    steps: listSteps(verdict, clusterObjectSet, clusterExtension, cleanup),
    rollback: planRollback(cluster, clusterObjectSet, clusterExtension),
  };
}

/** Returns what the migration library does not look at. */
function findHidden(cluster: ClusterIndex, verdict: MigrationVerdict): Diagnostic[] {
  const subscription = cluster.find(kinds.subscription, verdict.subscription, verdict.namespace);
  const installed = subscription && findInstalled(cluster, subscription);
  if (installed === undefined || 'error' in installed) return [];
  const { csv } = installed;
  const subject = `ClusterServiceVersion ${getKey(csv)}`;
  const warnings: Diagnostic[] = [];
  if (readProperties(csv).properties.some(({ type }) => type === 'olm.constraint')) {
    const problem = 'has an olm.constraint, which OLM v1 refuses when it resolves the next version';
    warnings.push(createWarning('constraint', problem, { subject }));
  }
  const isOpen = getObjects(csv, 'spec', 'install', 'spec', 'clusterPermissions').some((permission) =>
    getObjects(permission, 'rules').some((rule) => getTexts(rule, 'apiGroups').includes('*')),
  );
  if (isOpen) {
    const problem = 'has permissions for all API groups, those of OLM v0 included';
    warnings.push(createWarning('any-group', problem, { subject }));
  }
  const secrets = collectObjects(cluster, installed).filter(
    (object) =>
      object['kind'] === 'Secret' && getText(object, 'type') !== '' && getText(object, 'type') !== 'Opaque',
  );
  for (const secret of secrets) {
    const problem = `type ${getText(secret, 'type')} is kept; the migration library loses it`;
    warnings.push(createWarning('secret-type', problem, { subject: `Secret ${getKey(secret)}` }));
  }
  for (const secret of listMissingSecrets(cluster, installed)) {
    const problem = 'not in the snapshot, so the ClusterObjectSet lacks it';
    const hint = 'add the Secret to the snapshot: captured ones have none';
    warnings.push(createWarning('missing-secret', problem, { subject: `Secret ${secret}`, hint }));
  }
  return warnings;
}

function listSteps(
  { subscription, namespace, installedCSV }: MigrationVerdict,
  set: JsonObject,
  extension: JsonObject,
  cleanup: readonly CleanupStep[],
): string[] {
  return [
    `Delete Subscription ${namespace}/${subscription} and ClusterServiceVersion ${namespace}/${installedCSV}, keeping their objects (--cascade=orphan)`,
    `Apply ClusterObjectSet ${getName(set)}, and wait until it is Succeeded and Available`,
    `Apply ClusterExtension ${getName(extension)}, and wait until it is Installed`,
    ...cleanup.filter(({ skipped }) => !skipped).map(({ description }) => description),
  ];
}

function planRollback(
  cluster: ClusterIndex,
  set: JsonObject,
  extension: JsonObject,
): OperatorPlan['rollback'] {
  // A snapshot without Namespaces: the namespace of an installed extension exists.
  const namespace = { ...kinds.namespace, metadata: { name: getText(extension, 'spec', 'namespace') } };
  const sets = cluster.list(kinds.clusterObjectSet);
  const after = new ClusterIndex([...sets, namespace, set, extension]);
  const rollback = rollBackMigration(after, getName(extension), true);
  if ('error' in rollback) return { steps: [rollback.error], documents: [] };
  return {
    steps: [
      ...rollback.deletedSets.map(
        (name) => `Delete ClusterObjectSet ${name}, keeping its objects (--cascade=orphan)`,
      ),
      `Delete ClusterExtension ${getName(extension)}, keeping its objects (--cascade=orphan)`,
      `Apply Subscription ${getKey(rollback.subscription)}`,
    ],
    documents: [rollback.subscription],
  };
}
