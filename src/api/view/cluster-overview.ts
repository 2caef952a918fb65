import { type Diagnostic, createFault } from '../../core/diagnostic.js';
import { LimitError } from '../../core/errors.js';
import { readConditions } from '../../solve/upgrade/operator-namespaces.js';
import type { OperatorHop, UpgradeHop, UpgradeNote } from '../../solve/upgrade/upgrade-types.js';
import { type OperatorExplanation, explainOperator } from '../../solve/v0/explain-operator.js';
import { predictNamespace, predictionLimits } from '../../solve/v0/predict.js';
import type { Session } from '../../source/session.js';
import type {
  ClusterFinding,
  ClusterHop,
  ClusterHopOperator,
  ClusterOperator,
  ClusterOverview,
} from '../../view/responses.js';
import { type PlanClusterUpgradeRequest, planClusterUpgrade } from '../cluster/plan-cluster-upgrade.js';
import {
  type ResolverNamespace,
  type ResolverRequest,
  readResolverNamespaces,
} from '../cluster/resolver-input.js';

/** Cluster that a page shows beside a catalog. */
export interface ClusterViewRequest extends ResolverRequest {
  /** Updates to plan; default none. */
  upgrade?: Omit<PlanClusterUpgradeRequest, 'snapshot'> | undefined;
}

/** Returns the operators of a snapshot with their next steps, and its updates. Throws OpmateError. */
export async function readClusterOverview(
  request: ClusterViewRequest,
  session: Session,
): Promise<ClusterOverview> {
  const { namespaces, findings } = await readResolverNamespaces(request, session);
  const { upgrade, snapshot } = request;
  const plan =
    upgrade === undefined ? undefined : await planClusterUpgrade({ ...upgrade, snapshot }, session);
  const limits: Diagnostic[] = [];
  const operators = namespaces.flatMap((namespace) => {
    try {
      return explainNamespace(namespace);
    } catch (error) {
      if (!(error instanceof LimitError)) throw error;
      const subject = `namespace ${namespace.state.namespace}`;
      limits.push(createFault('limit', `not resolved: ${error.problem}`, { subject }));
      return [];
    }
  });
  return {
    release: plan?.release ?? '',
    operators: operators.map(toOperator),
    hops: (plan?.hops ?? []).map(toHop),
    findings: [...findings, ...limits].map(toFinding),
  };
}

function explainNamespace({ state, catalogs, objects }: ResolverNamespace): OperatorExplanation[] {
  const prediction = predictNamespace(state, catalogs, {
    limits: predictionLimits,
    findsAlternatives: false,
  });
  const notUpgradeable = readConditions(objects);
  const subscribed = new Set(state.subscriptions.map(({ installedCsv }) => installedCsv));
  const freestanding = state.csvs.filter(({ name, isCopied }) => !isCopied && !subscribed.has(name));
  return [
    ...state.subscriptions.map((item) => ({ package: item.package, bundle: undefined })),
    ...freestanding.map(({ name }) => ({ package: '', bundle: name })),
  ].map((subject) => explainOperator(state, catalogs, prediction, { ...subject, notUpgradeable }));
}

function toOperator(operator: OperatorExplanation): ClusterOperator {
  const { namespace, package: name, channel, installed, version, state, reason } = operator;
  return {
    namespace,
    package: name,
    channel,
    installed,
    version,
    state,
    reason,
    upgrades: operator.upgrades.map((upgrade) => ({
      name: upgrade.name,
      channel: upgrade.channel,
      reason: upgrade.reason,
    })),
    heldBackBy: operator.heldBackBy.map(({ by, problem, remedy = '' }) => ({ by, problem, remedy })),
  };
}

function toHop({ from, to, isBlocked, releases, operators, order, notes }: UpgradeHop): ClusterHop {
  return {
    from,
    to,
    isBlocked,
    releases: releases.map(({ version, channel, risks }) => ({
      version,
      channel,
      risks: risks.map(({ name }) => name),
    })),
    operators: operators.filter(({ status }) => status !== 'ready').map(toHopOperator),
    steps: order.map(({ namespace, text, reason }) => ({ namespace, text, reason })),
    findings: [
      ...notes.map((note) => toNoteFinding(note, '')),
      ...operators.flatMap((operator) =>
        operator.notes
          .filter(({ text }) => text !== operator.reason)
          .map((note) => toNoteFinding(note, `${operator.namespace}/${operator.package}`)),
      ),
    ],
  };
}

function toHopOperator(operator: OperatorHop): ClusterHopOperator {
  const { namespace, package: name, status, reason, installed, before, after } = operator;
  return {
    namespace,
    package: name,
    status,
    reason,
    installed: installed?.bundle ?? '',
    before: before?.bundle ?? '',
    after: after?.bundle ?? '',
    channel: (after ?? before ?? installed)?.channel ?? '',
  };
}

function toNoteFinding({ severity, text }: UpgradeNote, subject: string): ClusterFinding {
  return { severity, subject, problem: text, hint: '' };
}

function toFinding({ severity, subject = '', problem, hint = '' }: Diagnostic): ClusterFinding {
  return { severity, subject, problem, hint };
}
