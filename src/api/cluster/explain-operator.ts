import type { Diagnostic } from '../../core/diagnostic.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { findNearest } from '../../document/field.js';
import { readConditions } from '../../solve/upgrade/operator-namespaces.js';
import { type OperatorExplanation, explainOperator } from '../../solve/v0/explain-operator.js';
import { listExisting } from '../../solve/v0/namespace-state.js';
import { predictNamespace, predictionLimits } from '../../solve/v0/predict.js';
import type { Session } from '../../source/session.js';
import { type ResolverNamespace, type ResolverRequest, readResolverNamespaces } from './resolver-input.js';

/** Request of `explainClusterOperator`. */
export interface ExplainOperatorRequest extends ResolverRequest {
  /** Name of a ClusterServiceVersion, bundle, package or Subscription. */
  name: string;
}

/** Explanations of an operator, one per namespace that has it. */
export interface ClusterExplanation {
  operators: OperatorExplanation[];
  /** Faults of the snapshot. */
  findings: Diagnostic[];
}

/** Package, and bundle unless a package is asked for. */
interface Subject {
  package: string;
  bundle: string | undefined;
}

/**
 * Explains the version of an operator on a cluster: why it has this version, what holds it back, and what would release it.
 * Throws OpmateError: NOT_FOUND for a name that neither the snapshot nor its catalogs have, LIMIT, and as `predictCluster`.
 */
export async function explainClusterOperator(
  request: ExplainOperatorRequest,
  session: Session,
): Promise<ClusterExplanation> {
  const { namespaces, findings } = await readResolverNamespaces(request, session);
  const operators = namespaces.flatMap((namespace) => {
    const subject = findSubject(namespace, request.name);
    return subject === undefined ? [] : [explain(namespace, subject)];
  });
  if (operators.length > 0) return { operators, findings };
  const known = namespaces.flatMap(({ state }) => state.subscriptions.map((item) => item.package));
  const near = findNearest(request.name, known);
  throw new OpmateError('NOT_FOUND', 'no operator or subscribed bundle has this name', {
    subject: quoteGo(request.name),
    hint: near === undefined ? `use one of ${[...new Set(known)].join(', ')}` : `use ${near}`,
  });
}

function findSubject({ state, catalogs }: ResolverNamespace, name: string): Subject | undefined {
  const { subscriptions, csvs } = state;
  const subscribed = subscriptions.find((item) => item.package === name || item.name === name);
  if (subscribed !== undefined) return { package: subscribed.package, bundle: undefined };
  const installed = csvs.find((csv) => csv.name === name && !csv.isCopied);
  if (installed !== undefined) {
    const owner = subscriptions.find(({ installedCsv }) => installedCsv === name);
    return { package: owner?.package ?? findPackage(state, name), bundle: name };
  }
  for (const { entries } of catalogs) {
    const entry = entries.find((item) => item.name === name);
    if (entry !== undefined && subscriptions.some((item) => item.package === entry.package))
      return { package: entry.package, bundle: name };
  }
  return undefined;
}

function findPackage(state: ResolverNamespace['state'], name: string): string {
  try {
    return listExisting(state).find((entry) => entry.name === name)?.package ?? '';
  } catch (error) {
    if (error instanceof OpmateError) return '';
    throw error;
  }
}

function explain({ state, catalogs, objects }: ResolverNamespace, subject: Subject): OperatorExplanation {
  const options = { limits: predictionLimits, findsAlternatives: false };
  const prediction = predictNamespace(state, catalogs, options);
  return explainOperator(state, catalogs, prediction, {
    ...subject,
    notUpgradeable: readConditions(objects),
  });
}
