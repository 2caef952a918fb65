import type { SatLimits } from '../sat.js';
import { compareBytes } from '../../core/order.js';
import { parseTolerantVersion } from '../../core/semver.js';
import { type InstallPlan, planInstallation } from './install-plan.js';
import type { CsvState, NamespaceState, SubscriptionState } from './namespace-state.js';
import {
  type ChosenEntry,
  type NamespaceResolution,
  type ResolutionOrder,
  defaultOrder,
  resolveNamespace,
} from './resolve.js';
import type { ResolverCatalog } from './resolver-types.js';
import type { Variable } from './variables.js';

/** One resolution, and the state that it leads to on a cluster where the plan is approved and succeeds. */
export interface PredictedRound {
  /** State that the round starts from. */
  before: NamespaceState;
  resolution: NamespaceResolution;
  /** Undefined unless the resolution succeeds. */
  plan: InstallPlan | undefined;
}

/**
 * Why the last round ends: no Subscription changes, a state comes back, constraints conflict, an error, or the maximum
 * number of rounds.
 */
export type PredictionEnd = 'stable' | 'cycle' | 'unsatisfiable' | 'error' | 'limit';

/** Prediction for a namespace. */
export interface NamespacePrediction {
  namespace: string;
  rounds: PredictedRound[];
  end: PredictionEnd;
  /** Other results of the first round, which OLM's random order may lead to. */
  alternatives: NamespaceResolution[];
}

/** Options of a prediction. */
interface PredictOptions {
  limits: SatLimits;
  /** Default 20. */
  maxRounds?: number;
  /** Finds other results of the first round that OLM's random order may lead to; default true. */
  findsAlternatives?: boolean;
}

/** Limits of one solver; the largest recorded case takes a hundredth of the steps, and less than a second. */
export const predictionLimits: SatLimits = { maxSteps: 20_000_000, maxMs: 60_000 };
const maxOrders = 16;
/** Maximum number of Subscriptions and versions of which each comes first once; of more only two orders are tried. */
const maxShuffled = 64;

/** Predicts what OLM v0 does with the Subscriptions of a namespace, round by round. Throws LimitError. */
export function predictNamespace(
  state: NamespaceState,
  catalogs: readonly ResolverCatalog[],
  { limits, maxRounds = 20, findsAlternatives = true }: PredictOptions,
): NamespacePrediction {
  const { namespace } = state;
  const rounds: PredictedRound[] = [];
  const alternatives = findsAlternatives ? findAlternatives(state, catalogs, limits) : [];
  const end = (reason: PredictionEnd): NamespacePrediction => ({
    namespace,
    rounds,
    end: reason,
    alternatives,
  });
  const seen = new Set([describeState(state)]);
  let before = state;
  while (rounds.length < maxRounds) {
    const resolution = resolveNamespace(before, catalogs, limits);
    if (resolution.outcome !== 'resolved') {
      rounds.push({ before, resolution, plan: undefined });
      return end(resolution.outcome);
    }
    const plan = planInstallation(before, resolution.chosen);
    rounds.push({ before, resolution, plan });
    if (plan.updatedSubscriptions.length === 0) return end('stable');
    before = applyPlan(before, plan);
    const description = describeState(before);
    if (seen.has(description)) return end('cycle');
    seen.add(description);
  }
  return end('limit');
}

/** Returns the state after a plan has succeeded: replaced versions are gone, `installedCSV` is `currentCSV`. */
function applyPlan(state: NamespaceState, plan: InstallPlan): NamespaceState {
  const replaced = new Set(plan.installs.map(({ replaces }) => replaces));
  const installed = new Map(plan.installs.map((item) => [item.entry.name, item]));
  const csvs = state.csvs.filter(({ name }) => !replaced.has(name) && !installed.has(name));
  for (const item of installed.values()) csvs.push(toCsv(state.namespace, item));
  csvs.sort((a, b) => compareBytes(a.name, b.name));
  const updates = new Map(plan.updatedSubscriptions.map(({ name, currentCsv }) => [name, currentCsv]));
  const settle = (subscription: SubscriptionState, csv: string): SubscriptionState => ({
    ...subscription,
    currentCsv: csv,
    installedCsv: csv,
    state: 'AtLatestKnown',
  });
  const subscriptions = state.subscriptions.map((subscription) => {
    const csv = updates.get(subscription.name);
    return csv === undefined ? subscription : settle(subscription, csv);
  });
  for (const subscription of plan.newSubscriptions)
    subscriptions.push(settle(subscription, subscription.startingCsv));
  subscriptions.sort((a, b) => compareBytes(a.name, b.name));
  return { ...state, csvs, subscriptions };
}

function toCsv(namespace: string, { entry, replaces }: ChosenEntry): CsvState {
  return {
    name: entry.name,
    namespace,
    version: entry.version ?? parseTolerantVersion('0.0.0'),
    replaces,
    phase: 'Succeeded',
    isCopied: false,
    annotation: undefined,
    properties: entry.properties,
    owned: [],
    required: [],
  };
}

function describeState({ csvs, subscriptions }: NamespaceState): string {
  return JSON.stringify([
    csvs.map(({ name }) => name),
    subscriptions.map(({ name, installedCsv, currentCsv }) => [name, installedCsv, currentCsv]),
  ]);
}

/** Returns results of other orders that differ from the default order's, each once. */
function findAlternatives(
  state: NamespaceState,
  catalogs: readonly ResolverCatalog[],
  limits: SatLimits,
): NamespaceResolution[] {
  const seen = new Map<string, NamespaceResolution>();
  for (const order of listOrders(state)) {
    const resolution = resolveNamespace(state, catalogs, limits, order);
    const key = describeResolution(state, resolution);
    if (!seen.has(key)) seen.set(key, resolution);
  }
  return [...seen.values()].slice(1);
}

/** Returns a text that is equal for resolutions with the same plan. */
function describeResolution(state: NamespaceState, resolution: NamespaceResolution): string {
  if (resolution.outcome !== 'resolved') return resolution.outcome;
  const { installs, newSubscriptions, updatedSubscriptions } = planInstallation(state, resolution.chosen);
  const list = installs.map(({ entry, replaces }) => [entry.name, entry.catalog, replaces]);
  const generated = newSubscriptions.map(({ name, startingCsv }) => [name, startingCsv]);
  return JSON.stringify([list, generated, updatedSubscriptions]);
}

/** Returns orders that differ in what comes first: each anchor once, both directions, each rotation of channels. */
function* listOrders(state: NamespaceState): Generator<ResolutionOrder> {
  yield defaultOrder;
  const count = state.subscriptions.length + state.csvs.length;
  if (state.subscriptions.some(({ channel }) => channel === ''))
    for (let rotation = 1; rotation <= 3; rotation++) yield { ...defaultOrder, channelRotation: rotation };
  if (count < 2) return;
  yield { ...defaultOrder, orderAnchors: (anchors) => anchors.toReversed() };
  if (count > maxShuffled) return;
  for (let first = 1; first < Math.min(count, maxOrders); first++)
    yield { ...defaultOrder, orderAnchors: (anchors) => moveToFront(anchors, first) };
}

function moveToFront(anchors: readonly Variable[], index: number): Variable[] {
  const first = anchors[index % Math.max(1, anchors.length)];
  return first === undefined ? [] : [first, ...anchors.filter((anchor) => anchor !== first)];
}
