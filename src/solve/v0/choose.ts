import { SatSolver } from '../sat.js';
import type { SatLimits } from '../sat.js';
import type { Constraint, Variable } from './variables.js';

/** Chosen variables, or a smallest set of constraints that cannot hold together. */
type Choice =
  { chosen: readonly Variable[] } | { chosen?: undefined; conflict: readonly AppliedConstraint[] };

/** A constraint and the variable that has it. */
export interface AppliedConstraint {
  variable: Variable;
  constraint: Constraint;
}

/**
 * Chooses variables like OLM's solver: mandatory ones in the order of `anchors`, then what these require, breadth first;
 * of each list the first that fits all chosen before; nothing that no chain requires. Throws LimitError. (Source: OLM,
 * solver/search.go, which backtracks to the same result.)
 */
export function chooseVariables(
  variables: ReadonlyMap<string, Variable>,
  anchors: readonly Variable[],
  limits: SatLimits,
): Choice {
  const { solver, literals } = buildFormula(variables, limits);
  const rules = [...variables.values()].filter(
    (variable) => isAnchor(variable) && !anchors.includes(variable),
  );
  const guesses: number[] = [];
  const guessed = new Set<string>();
  const chosen: Variable[] = [];
  const queue: (readonly string[])[] = [...anchors, ...rules].map(({ id }) => [id]);
  const mandatory = [...anchors, ...rules].map(({ id }) => literals.get(id) as number);
  if (!solver.solve(mandatory).satisfiable) return { conflict: findConflict(variables, limits) };
  for (let next = 0; next < queue.length; next++) {
    const candidates = queue[next] as readonly string[];
    if (candidates.some((id) => guessed.has(id))) continue;
    const id = candidates.find((candidate) => {
      const literal = literals.get(candidate) as number;
      return solver.isTrue(literal) || solver.solve([...mandatory, ...guesses, literal]).satisfiable;
    });
    if (id === undefined) return { conflict: findConflict(variables, limits) };
    const variable = variables.get(id) as Variable;
    const literal = literals.get(id) as number;
    // The model must be one in which everything guessed is true.
    if (!solver.isTrue(literal)) solver.solve([...mandatory, ...guesses, literal]);
    guesses.push(literal);
    guessed.add(id);
    chosen.push(variable);
    for (const constraint of variable.constraints)
      if (constraint.kind === 'dependency' && constraint.candidates.length > 0)
        queue.push(constraint.candidates);
  }
  return { chosen };
}

/** Reports whether a variable must be in each solution. */
export function isAnchor({ constraints }: Variable): boolean {
  return constraints.some(({ kind }) => kind === 'mandatory');
}

function buildFormula(
  variables: ReadonlyMap<string, Variable>,
  limits: SatLimits,
): { solver: SatSolver; literals: Map<string, number> } {
  const solver = new SatSolver(limits);
  const literals = new Map([...variables.keys()].map((id) => [id, solver.addVariable()]));
  const always = solver.addVariable();
  solver.addClause([always]);
  for (const variable of variables.values())
    for (const constraint of variable.constraints)
      if (constraint.kind !== 'mandatory') addConstraint(solver, always, literals, { variable, constraint });
  return { solver, literals };
}

/** Adds a constraint that holds while `selector` is true. */
function addConstraint(
  solver: SatSolver,
  selector: number,
  literals: ReadonlyMap<string, number>,
  { variable, constraint }: AppliedConstraint,
): void {
  const literal = (id: string): number => literals.get(id) as number;
  const own = literal(variable.id);
  switch (constraint.kind) {
    case 'mandatory':
      solver.addClause([-selector, own]);
      return;
    case 'prohibited':
      solver.addClause([-selector, -own]);
      return;
    case 'dependency':
      solver.addClause([-selector, -own, ...constraint.candidates.map(literal)]);
      return;
    case 'conflict':
      solver.addClause([-selector, -own, -literal(constraint.other)]);
      return;
    case 'at-most-one':
      solver.addAtMostOne(selector, constraint.members.map(literal));
  }
}

/** Returns constraints that cannot hold together, of which each is needed for that. */
function findConflict(variables: ReadonlyMap<string, Variable>, limits: SatLimits): AppliedConstraint[] {
  // Of constraints that are the same formula OLM names the last.
  const byFormula = new Map<string, AppliedConstraint>();
  for (const variable of variables.values())
    for (const constraint of variable.constraints)
      byFormula.set(getFormula(variable, constraint), { variable, constraint });
  const all = [...byFormula.values()];
  let core = findCore(variables, all, limits) ?? all;
  for (const candidate of [...core].reverse()) {
    const smaller = findCore(
      variables,
      core.filter((item) => item !== candidate),
      limits,
    );
    if (smaller !== undefined) core = smaller;
  }
  return core;
}

/** Returns a text that is equal for constraints that are the same formula. */
function getFormula({ id }: Variable, constraint: Constraint): string {
  switch (constraint.kind) {
    case 'mandatory':
      return JSON.stringify([id]);
    case 'prohibited':
      return JSON.stringify(['not', id]);
    case 'dependency':
      return JSON.stringify(['not', id, ...constraint.candidates]);
    case 'conflict':
      return JSON.stringify(['neither', ...[id, constraint.other].sort()]);
    case 'at-most-one':
      return JSON.stringify(['one', ...constraint.members]);
  }
}

/** Returns those of some constraints that contradict each other; undefined if they can hold together. */
function findCore(
  variables: ReadonlyMap<string, Variable>,
  constraints: readonly AppliedConstraint[],
  limits: SatLimits,
): AppliedConstraint[] | undefined {
  const solver = new SatSolver(limits);
  const literals = new Map([...variables.keys()].map((id) => [id, solver.addVariable()]));
  const bySelector = new Map<number, AppliedConstraint>();
  for (const item of constraints) {
    const selector = solver.addVariable();
    bySelector.set(selector, item);
    addConstraint(solver, selector, literals, item);
  }
  const result = solver.solve([...bySelector.keys()]);
  if (result.satisfiable) return undefined;
  const core = new Set(result.core);
  return [...bySelector].filter(([selector]) => core.has(selector)).map(([, item]) => item);
}
