import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { LimitError } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { type ConflictLine, explainConflict } from '../../solve/v0/explain-conflict.js';
import { findSurprises } from '../../solve/v0/findings.js';
import type { PlanStep } from '../../solve/v0/install-plan.js';
import type { SubscriptionState } from '../../solve/v0/namespace-state.js';
import {
  type NamespacePrediction,
  type PredictedRound,
  type PredictionEnd,
  predictNamespace,
  predictionLimits,
} from '../../solve/v0/predict.js';
import type { ChosenEntry, NamespaceResolution } from '../../solve/v0/resolve.js';
import { describeInstall, findRequirers } from '../../solve/v0/reasons.js';
import { bundleId } from '../../solve/v0/variables.js';
import type { Session } from '../../source/session.js';
import { type ResolverNamespace, type ResolverRequest, readResolverNamespaces } from './resolver-input.js';

/** Request of `predictCluster`. */
export type PredictClusterRequest = ResolverRequest;

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
  updatedSubscriptions: { name: string; currentCSV: string; reason: string }[];
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
  /** Reason for its bundle. */
  reason: string;
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

/**
 * Predicts what OLM v0 does on a cluster with these catalogs: install plans, round by round, until no Subscription
 * changes; or why it cannot. Throws OpmateError, NOT_FOUND without a
 * Subscription, and for a catalog or namespace that the snapshot lacks.
 */
export async function predictCluster(
  request: PredictClusterRequest,
  session: Session,
): Promise<ClusterPrediction> {
  const { namespaces, findings } = await readResolverNamespaces(request, session);
  return { namespaces: namespaces.map(predictOne), findings };
}

function predictOne({ state, catalogs }: ResolverNamespace): PredictedNamespace {
  const { namespace } = state;
  let prediction: NamespacePrediction;
  try {
    prediction = predictNamespace(state, catalogs, { limits: predictionLimits });
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
  const installs = plan.installs.map((item) => {
    const required = requirers.get(bundleId(item.entry)) ?? [];
    return toPlannedInstall(item, describeInstall(before, item, required), required);
  });
  const reasons = new Map(installs.map(({ name, reason }) => [name, reason]));
  return {
    outcome,
    installs,
    newSubscriptions: plan.newSubscriptions.map((subscription) =>
      toPlannedSubscription(subscription, reasons.get(subscription.startingCsv) ?? ''),
    ),
    updatedSubscriptions: plan.updatedSubscriptions.map(({ name, currentCsv }) => ({
      name,
      currentCSV: currentCsv,
      reason: reasons.get(currentCsv) ?? '',
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

function toPlannedSubscription(subscription: SubscriptionState, reason: string): PlannedSubscription {
  return {
    name: subscription.name,
    package: subscription.package,
    channel: subscription.channel,
    source: subscription.source,
    sourceNamespace: subscription.sourceNamespace,
    startingCSV: subscription.startingCsv,
    approval: 'Automatic',
    reason,
  };
}
