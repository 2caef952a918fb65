import { OpmateError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import type { SatLimits } from '../sat.js';
import { type AppliedConstraint, chooseVariables, isAnchor } from './choose.js';
import { type NamespaceState, listExisting } from './namespace-state.js';
import { type ResolverCatalog, type ResolverEntry, existingCatalog } from './resolver-types.js';
import { ResolverSources } from './sources.js';
import { type Constraint, type Variable, VariableBuilder, aggregate } from './variables.js';

/** A bundle that a resolution installs. */
export interface ChosenEntry {
  entry: ResolverEntry;
  /** `spec.replaces` of the ClusterServiceVersion. */
  replaces: string;
}

/** Result of one resolution. */
export type NamespaceResolution =
  | { outcome: 'resolved'; chosen: readonly ChosenEntry[]; variables: readonly Variable[] }
  | { outcome: 'unsatisfiable'; message: string; conflict: readonly AppliedConstraint[] }
  | { outcome: 'error'; message: string };

/** Order in which a resolution takes what OLM takes in a random order. */
export interface ResolutionOrder {
  /** Returns the order of Subscriptions and installed versions without one. */
  orderAnchors(anchors: readonly Variable[]): readonly Variable[];
  /** See `RandomChoices`. */
  channelRotation: number;
}

/** By name, which is one of the orders of OLM. */
export const defaultOrder: ResolutionOrder = { orderAnchors: (anchors) => anchors, channelRotation: 0 };

/**
 * Resolves a namespace like OLM v0: all its Subscriptions together, with the catalogs of the namespace and the global
 * namespace. Throws LimitError. (Source: OLM, step_resolver.go, resolver.go.)
 */
export function resolveNamespace(
  state: NamespaceState,
  catalogs: readonly ResolverCatalog[],
  limits: SatLimits,
  order: ResolutionOrder = defaultOrder,
): NamespaceResolution {
  try {
    return resolveOrThrow(state, catalogs, limits, order);
  } catch (error) {
    if (error instanceof OpmateError && error.code === 'INVALID')
      return { outcome: 'error', message: error.message };
    throw error;
  }
}

/**
 * Returns the constraints that keep a bundle from being chosen, of which each is needed for that; undefined if it can be,
 * or is no candidate at all. Throws LimitError, and OpmateError INVALID for what fails the namespace.
 */
export function findObstacles(
  state: NamespaceState,
  catalogs: readonly ResolverCatalog[],
  limits: SatLimits,
  id: string,
): readonly AppliedConstraint[] | undefined {
  const { variables, anchors } = buildVariables(state, catalogs, defaultOrder);
  const wanted = variables.get(id);
  if (wanted === undefined) return undefined;
  const mandatory: Constraint = { kind: 'mandatory', text: '' };
  const asked = { ...wanted, constraints: [...wanted.constraints, mandatory] };
  const others = anchors.filter((anchor) => anchor !== wanted);
  const choice = chooseVariables(new Map([...variables, [id, asked]]), [asked, ...others], limits);
  if (choice.chosen !== undefined) return undefined;
  return choice.conflict.filter(({ constraint }) => constraint !== mandatory);
}

function resolveOrThrow(
  state: NamespaceState,
  catalogs: readonly ResolverCatalog[],
  limits: SatLimits,
  order: ResolutionOrder,
): NamespaceResolution {
  const { variables, anchors } = buildVariables(state, catalogs, order);
  const choice = chooseVariables(variables, anchors, limits);
  if (choice.chosen === undefined) {
    const texts = choice.conflict.map(({ constraint }) => constraint.text).sort(compareBytes);
    const message = `constraints not satisfiable: ${texts.join(', ')}`;
    return { outcome: 'unsatisfiable', message, conflict: choice.conflict };
  }
  const chosen = choice.chosen.flatMap(({ entry, replaces }) =>
    entry === undefined || entry.catalog.name === existingCatalog
      ? []
      : [{ entry, replaces: replaces ?? entry.replaces }],
  );
  return { outcome: 'resolved', chosen, variables: choice.chosen };
}

/** Builds the variables of a namespace, and the order of those that must be. Throws OpmateError INVALID. */
function buildVariables(
  state: NamespaceState,
  catalogs: readonly ResolverCatalog[],
  { orderAnchors, channelRotation }: ResolutionOrder,
): { variables: ReadonlyMap<string, Variable>; anchors: readonly Variable[] } {
  const { operatorGroups, namespace } = state;
  if (operatorGroups.length !== 1) {
    const problem = `expected 1 OperatorGroup in the namespace, found ${operatorGroups.length}`;
    throw new OpmateError('INVALID', problem);
  }
  const visible = catalogs.filter(
    ({ key }) => key.namespace === namespace || operatorGroups[0]?.excludesGlobal !== true,
  );
  const existing = readExisting(state);
  const builder = new VariableBuilder(new ResolverSources([existing, ...visible], namespace), state, {
    channelRotation,
  });
  builder.addExisting();
  const failures = builder.addSubscriptions();
  builder.addRules();
  const broken = [existing, ...visible].filter(({ error }) => error !== undefined);
  if (broken.length > 0) throw new OpmateError('INVALID', aggregate(broken.map(describeBroken)));
  if (failures.length > 0) throw new OpmateError('INVALID', aggregate(failures));
  const { variables } = builder;
  const anchors = [...variables.values()]
    .filter((variable) => isAnchor(variable) && (variable.entry ?? variable.subscription) !== undefined)
    .sort((a, b) => compareBytes(a.id, b.id));
  return { variables, anchors: orderAnchors(anchors) };
}

function readExisting(state: NamespaceState): ResolverCatalog {
  const key = { name: existingCatalog, namespace: state.namespace };
  try {
    return { key, priority: 0, entries: listExisting(state) };
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return { key, priority: 0, entries: [], error: error.message };
  }
}

function describeBroken({ key, error }: ResolverCatalog): string {
  return `error using catalogsource ${key.namespace}/${key.name}: ${error}`;
}
