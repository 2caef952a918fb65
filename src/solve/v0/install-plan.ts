import { compareBytes, sortedByBytes } from '../../core/order.js';
import { getObjects, getText, getValue } from '../../document/json-fields.js';
import { isJsonObject } from '../../document/json.js';
import { isCsv } from '../../model/csv.js';
import type { NamespaceState, SubscriptionState } from './namespace-state.js';
import type { ChosenEntry } from './resolve.js';
import { isSameCatalogKey } from './sources.js';

/** A step of an install plan whose bundle has its manifests in the catalog. */
export interface PlanStep {
  /** ClusterServiceVersion that needs it. */
  resolving: string;
  kind: string;
  /** A hash that OLM adds is `*`. */
  name: string;
}

/** What OLM makes of a resolution. */
export interface InstallPlan {
  /** Bundles to install that are not there yet. */
  installs: ChosenEntry[];
  /** Subscriptions for dependencies. */
  newSubscriptions: SubscriptionState[];
  /** Subscriptions that get another `currentCSV`. */
  updatedSubscriptions: { name: string; currentCsv: string }[];
  /** Approval of the plan; `none` if no Subscription changes, so that OLM makes no plan; undefined without steps. */
  approval: 'Automatic' | 'Manual' | 'none' | undefined;
  steps: PlanStep[];
}

/** Returns what OLM makes of chosen bundles. (Source: OLM, step_resolver.go, ResolveSteps.) */
export function planInstallation(state: NamespaceState, chosen: readonly ChosenEntry[]): InstallPlan {
  const plan: InstallPlan = {
    installs: [],
    newSubscriptions: [],
    updatedSubscriptions: [],
    approval: undefined,
    steps: [],
  };
  const currentCsvs = new Map(
    state.subscriptions.map((subscription) => [subscription, subscription.currentCsv]),
  );
  const exists = (name: string): boolean => name !== '' && state.csvs.some((csv) => csv.name === name);
  for (const item of [...chosen].sort((a, b) => compareBytes(a.entry.name, b.entry.name))) {
    const { name } = item.entry;
    const matching = state.subscriptions.filter((subscription) => isFor(subscription, item));
    const isCurrent = matching.every((subscription) => {
      const current = currentCsvs.get(subscription) as string;
      return current === name && exists(current);
    });
    if (matching.length > 0 && isCurrent) continue;
    plan.installs.push(item);
    plan.steps.push(...listSteps(item));
    if (matching.length === 0) {
      const subscription = generateSubscription(state.namespace, item);
      plan.newSubscriptions.push(subscription);
      plan.steps.push({ resolving: name, kind: 'Subscription', name: subscription.name });
    }
    for (const subscription of matching) {
      if (currentCsvs.get(subscription) === name) continue;
      currentCsvs.set(subscription, name);
      plan.updatedSubscriptions.push({ name: subscription.name, currentCsv: name });
    }
  }
  if (plan.installs.length > 0) plan.approval = getApproval(state, plan);
  plan.steps = orderSteps(plan.steps);
  return plan;
}

function getApproval(state: NamespaceState, plan: InstallPlan): InstallPlan['approval'] {
  if (plan.updatedSubscriptions.length === 0) return 'none';
  return state.subscriptions.some(({ isManual }) => isManual) ? 'Manual' : 'Automatic';
}

function isFor(subscription: SubscriptionState, { entry }: ChosenEntry): boolean {
  const { channel, source, sourceNamespace } = subscription;
  if (subscription.package !== entry.package) return false;
  if (channel !== '' && channel !== entry.channel) return false;
  if (source === '' && sourceNamespace === '') return true;
  return isSameCatalogKey({ name: source, namespace: sourceNamespace }, entry.catalog);
}

function generateSubscription(namespace: string, { entry }: ChosenEntry): SubscriptionState {
  const { catalog, channel } = entry;
  return {
    name: [entry.package, channel, catalog.name, catalog.namespace].join('-'),
    namespace,
    package: entry.package,
    channel,
    startingCsv: entry.name,
    source: catalog.name,
    sourceNamespace: catalog.namespace,
    isManual: false,
    installedCsv: '',
    currentCsv: '',
    state: '',
    hasInstallPlan: false,
    isGenerated: true,
  };
}

/** Returns the steps of a bundle in order: its version, other objects, then permissions per service account. */
function listSteps({ entry }: ChosenEntry): PlanStep[] {
  if (entry.manifests === undefined) return [];
  const { objects } = entry.manifests;
  const csv = objects.find((object) => isJsonObject(object) && isCsv(object));
  const step = (kind: string, name: string): PlanStep => ({ resolving: entry.name, kind, name });
  const others = objects
    .filter((object) => getText(object, 'kind') !== 'ClusterServiceVersion')
    .map((object) => {
      const kind = getText(object, 'kind');
      const name = getText(object, 'metadata', 'name') || getText(object, 'metadata', 'generateName');
      return step(kind === 'Secret' ? 'BundleSecret' : kind, name);
    });
  return [step('ClusterServiceVersion', entry.name), ...others, ...listPermissions(csv, step)];
}

function listPermissions(csv: unknown, step: (kind: string, name: string) => PlanStep): PlanStep[] {
  const name = `${getText(csv, 'metadata', 'name')}-*`;
  const strategy = getValue(csv, 'spec', 'install', 'spec');
  const accountsOf = (field: string): string[] =>
    getObjects(strategy, field).map((permission) => getText(permission, 'serviceAccountName'));
  const own = accountsOf('permissions');
  const cluster = accountsOf('clusterPermissions');
  return sortedByBytes(new Set([...own, ...cluster])).flatMap((account) => {
    const repeat = (accounts: readonly string[], kind: string): PlanStep[] =>
      accounts.filter((other) => other === account).map(() => step(kind, name));
    return [
      ...(account === 'default' ? [] : [step('ServiceAccount', account)]),
      ...repeat(own, 'Role'),
      ...repeat(own, 'RoleBinding'),
      ...repeat(cluster, 'ClusterRole'),
      ...repeat(cluster, 'ClusterRoleBinding'),
    ];
  });
}

const stepRanks = ['ClusterServiceVersion', 'CustomResourceDefinition'];

/** Sorts steps: versions, CRDs, others; steps of one bundle keep their order. */
function orderSteps(steps: readonly PlanStep[]): PlanStep[] {
  const rank = ({ kind }: PlanStep): number => {
    const index = stepRanks.indexOf(kind);
    return index < 0 ? stepRanks.length : index;
  };
  return [...steps].sort((a, b) => rank(a) - rank(b));
}
