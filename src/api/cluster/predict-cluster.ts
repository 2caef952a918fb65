import { type Diagnostic, createFault, createWarning } from '../../core/diagnostic.js';
import { LimitError, OpmateError } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import type { JsonObject } from '../../document/json.js';
import { getText } from '../../document/json-fields.js';
import { type ClusterSnapshot, readSnapshot } from '../../cluster/snapshot.js';
import type { ClusterText } from '../../cluster/snapshot-files.js';
import { type ConflictLine, explainConflict } from '../../solve/v0/explain-conflict.js';
import { findSurprises } from '../../solve/v0/findings.js';
import type { PlanStep } from '../../solve/v0/install-plan.js';
import { type SubscriptionState, readNamespace } from '../../solve/v0/namespace-state.js';
import {
  type NamespacePrediction,
  type PredictedRound,
  type PredictionEnd,
  predictNamespace,
} from '../../solve/v0/predict.js';
import type { ChosenEntry, NamespaceResolution } from '../../solve/v0/resolve.js';
import { describeInstall, findRequirers } from '../../solve/v0/reasons.js';
import { bundleId } from '../../solve/v0/variables.js';
import type { CatalogKey, ResolverCatalog } from '../../solve/v0/resolver-types.js';
import type { Session } from '../../source/session.js';
import {
  type CatalogSourceContent,
  findCatalogSources,
  readResolverCatalogs,
  requireCatalogSources,
} from './read-resolver-catalogs.js';

/** Request of `predictCluster`. */
export interface PredictClusterRequest {
  /** Files, directories and texts of objects, or a snapshot. */
  snapshot: readonly (string | ClusterText)[] | ClusterSnapshot;
  /**
   * Content of CatalogSources by `NAMESPACE/NAME`, name or image; null for one without a connection. Others are left out
   * with a warning.
   */
  catalogs: ReadonlyMap<string, CatalogSourceContent | null>;
  /** Objects that are applied before, such as a new Subscription. */
  proposed?: readonly (string | ClusterText)[];
  /** Default all that have a Subscription. */
  namespaces?: readonly string[];
  /** Namespace whose catalogs all namespaces see; default `openshift-marketplace` if it has CatalogSources, else `olm`. */
  globalNamespace?: string;
}

/** A bundle of an install plan. */
export interface PlannedInstall {
  name: string;
  version: string;
  package: string;
  channel: string;
  /** `NAMESPACE/NAME`. */
  catalog: string;
  /** Empty without one. */
  replaces: string;
  /** Reason for this bundle. */
  reason: string;
  /** Bundles that require it. */
  requiredBy: string[];
}

/** One round of OLM: what one install plan does. */
export interface PlannedRound {
  outcome: NamespaceResolution['outcome'];
  installs: PlannedInstall[];
  newSubscriptions: PlannedSubscription[];
  updatedSubscriptions: { name: string; currentCSV: string }[];
  /** Approval that the plan needs; `none` if OLM makes no plan. */
  installPlan?: 'Automatic' | 'Manual' | 'none';
  /** Steps of bundles whose manifests are in the catalog. */
  steps: PlanStep[];
}

/** A Subscription that OLM creates for a dependency. */
export interface PlannedSubscription {
  name: string;
  package: string;
  channel: string;
  source: string;
  sourceNamespace: string;
  startingCSV: string;
  approval: 'Automatic';
}

/** Prediction for a namespace. */
export interface PredictedNamespace {
  namespace: string;
  rounds: PlannedRound[];
  end: PredictionEnd;
  /** OLM's message, if the last round fails. */
  message?: string;
  /** A smallest set of constraints that exclude each other. */
  conflict: ConflictLine[];
  /** OLM's random order can lead to other plans than the first: bundles of each. */
  alternatives: string[][];
  findings: Diagnostic[];
}

/** Prediction for a cluster. */
export interface ClusterPrediction {
  namespaces: PredictedNamespace[];
  /** Faults of the snapshot. */
  findings: Diagnostic[];
}

/** Maximum steps of one solver; the largest recorded case takes a hundredth. */
const maxSteps = 20_000_000;

/**
 * Predicts what OLM v0 does on a cluster with these catalogs: install plans, round by round, until no Subscription
 * changes; or why it cannot. Throws OpmateError, NOT_FOUND without a
 * Subscription, and for a catalog or namespace that the snapshot lacks.
 */
export async function predictCluster(
  request: PredictClusterRequest,
  session: Session,
): Promise<ClusterPrediction> {
  const { objects, findings } = await readState(request, session);
  const sources = findCatalogSources(objects, request.catalogs);
  requireCatalogSources(sources, objects, request.catalogs.keys());
  const catalogs = await readResolverCatalogs(sources, session);
  const globalNamespace = request.globalNamespace ?? findGlobalNamespace(objects);
  const namespaces = chooseNamespaces(objects, request.namespaces);
  return {
    findings: [...findings, ...sources.flatMap(findUnknownContent)],
    namespaces: namespaces.map((namespace) => {
      const visible = catalogs.filter(
        ({ key }) => key.namespace === namespace || key.namespace === globalNamespace,
      );
      return predictOne(namespace, objects, visible);
    }),
  };
}

function findUnknownContent({ key, content }: { key: CatalogKey; content: unknown }): Diagnostic[] {
  if (content !== undefined) return [];
  return [
    createWarning('unknown-catalog', 'content not specified: its bundles are left out', {
      subject: `CatalogSource ${key.namespace}/${key.name}`,
      hint: `specify its catalog as ${key.name}=REFERENCE`,
    }),
  ];
}

async function readState(
  { snapshot, proposed = [] }: PredictClusterRequest,
  session: Session,
): Promise<ClusterSnapshot> {
  const base = 'objects' in snapshot ? snapshot : await readSnapshot(snapshot, session);
  if (proposed.length === 0) return base;
  const added = await readSnapshot(proposed, session);
  const replaced = new Map(added.objects.map((object) => [objectKey(object), object]));
  const merged = base.objects.map((object) => {
    const proposal = replaced.get(objectKey(object));
    if (proposal === undefined) return object;
    replaced.delete(objectKey(object));
    // A status is the cluster's, not the document's.
    return { ...proposal, status: object['status'] ?? {} };
  });
  return { objects: [...merged, ...replaced.values()], findings: [...base.findings, ...added.findings] };
}

function objectKey(object: JsonObject): string {
  const names = ['namespace', 'name'].map((field) => getText(object, 'metadata', field));
  return [getText(object, 'kind'), ...names].join('/');
}

function findGlobalNamespace(objects: readonly JsonObject[]): string {
  const isOpenShift = objects.some(
    (object) =>
      object['kind'] === 'ClusterVersion' ||
      (object['kind'] === 'CatalogSource' &&
        getText(object, 'metadata', 'namespace') === 'openshift-marketplace'),
  );
  return isOpenShift ? 'openshift-marketplace' : 'olm';
}

function chooseNamespaces(objects: readonly JsonObject[], wanted: readonly string[] | undefined): string[] {
  const subscribed = sortedByBytes(
    new Set(
      objects
        .filter((object) => object['kind'] === 'Subscription')
        .map((object) => getText(object, 'metadata', 'namespace')),
    ),
  );
  if (subscribed.length === 0)
    throw new OpmateError('NOT_FOUND', 'no Subscription found', { hint: 'use the output of kubectl get' });
  if (wanted === undefined) return subscribed;
  const unknown = wanted.find((namespace) => !subscribed.includes(namespace));
  if (unknown === undefined) return [...wanted];
  throw new OpmateError('NOT_FOUND', 'no Subscription of the snapshot is in this namespace', {
    subject: `namespace ${unknown}`,
    hint: `use one of ${subscribed.join(', ')}`,
  });
}

function predictOne(
  namespace: string,
  objects: readonly JsonObject[],
  catalogs: readonly ResolverCatalog[],
): PredictedNamespace {
  let prediction: NamespacePrediction;
  try {
    prediction = predictNamespace(readNamespace(namespace, objects), catalogs, { limits: { maxSteps } });
  } catch (error) {
    if (!(error instanceof LimitError)) throw error;
    const finding = createFault('limit', `not resolved: ${error.problem}`, {
      subject: `namespace ${namespace}`,
    });
    return { namespace, rounds: [], end: 'limit', conflict: [], alternatives: [], findings: [finding] };
  }
  const last = prediction.rounds.at(-1)?.resolution;
  return {
    namespace,
    rounds: prediction.rounds.map(toPlannedRound),
    end: prediction.end,
    ...(last !== undefined && last.outcome !== 'resolved' && { message: last.message }),
    conflict: last?.outcome === 'unsatisfiable' ? explainConflict(last.conflict, catalogs) : [],
    alternatives: prediction.alternatives.map((resolution) =>
      resolution.outcome === 'resolved' ? resolution.chosen.map(({ entry }) => entry.name) : [],
    ),
    findings: withFailure(findSurprises(prediction, catalogs), prediction),
  };
}

/** Adds a fault for a namespace that is not resolved, unless its cause is one already. */
function withFailure(findings: Diagnostic[], { namespace, rounds, end }: NamespacePrediction): Diagnostic[] {
  const last = rounds.at(-1)?.resolution;
  if (last === undefined || last.outcome === 'resolved') return findings;
  if (end === 'error' && findings.some(({ severity }) => severity === 'error')) return findings;
  const code = end === 'unsatisfiable' ? 'unsatisfiable' : 'unresolved';
  return [...findings, createFault(code, last.message, { subject: `namespace ${namespace}` })];
}

function toPlannedRound({ before, resolution, plan }: PredictedRound): PlannedRound {
  const { outcome } = resolution;
  if (plan === undefined || resolution.outcome !== 'resolved')
    return { outcome, installs: [], newSubscriptions: [], updatedSubscriptions: [], steps: [] };
  const requirers = findRequirers(resolution.variables);
  return {
    outcome,
    installs: plan.installs.map((item) => {
      const required = requirers.get(bundleId(item.entry)) ?? [];
      return toPlannedInstall(item, describeInstall(before, item, required), required);
    }),
    newSubscriptions: plan.newSubscriptions.map(toPlannedSubscription),
    updatedSubscriptions: plan.updatedSubscriptions.map(({ name, currentCsv }) => ({
      name,
      currentCSV: currentCsv,
    })),
    ...(plan.approval !== undefined && { installPlan: plan.approval }),
    steps: plan.steps,
  };
}

function toPlannedInstall(
  { entry, replaces }: ChosenEntry,
  reason: string,
  required: readonly { name: string }[],
): PlannedInstall {
  return {
    name: entry.name,
    version: entry.versionText,
    package: entry.package,
    channel: entry.channel,
    catalog: `${entry.catalog.namespace}/${entry.catalog.name}`,
    replaces,
    reason,
    requiredBy: sortedByBytes(new Set(required.map(({ name }) => name))),
  };
}

function toPlannedSubscription(subscription: SubscriptionState): PlannedSubscription {
  return {
    name: subscription.name,
    package: subscription.package,
    channel: subscription.channel,
    source: subscription.source,
    sourceNamespace: subscription.sourceNamespace,
    startingCSV: subscription.startingCsv,
    approval: 'Automatic',
  };
}
