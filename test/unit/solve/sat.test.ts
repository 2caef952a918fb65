import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SatSolver } from '../../../src/solve/sat.js';

interface Formula {
  clauses: number[][];
  groups: number[][];
  assumptions: number[];
}

const count = 6;
const literal = fc.integer({ min: 1, max: count }).chain((variable) => fc.constantFrom(variable, -variable));
const formula: fc.Arbitrary<Formula> = fc.record({
  clauses: fc.array(fc.array(literal, { minLength: 1, maxLength: 4 }), { maxLength: 20 }),
  groups: fc.array(fc.array(fc.integer({ min: 1, max: count }), { minLength: 2, maxLength: 4 }), {
    maxLength: 4,
  }),
  assumptions: fc.uniqueArray(literal, { maxLength: 4, selector: Math.abs }),
});

/** Tries all assignments. */
function isSatisfiable({ clauses, groups, assumptions }: Formula): boolean {
  for (let bits = 0; bits < 2 ** count; bits++) {
    const isTrue = (item: number): boolean => ((bits >> (Math.abs(item) - 1)) & 1) === (item > 0 ? 1 : 0);
    const holds =
      assumptions.every(isTrue) &&
      clauses.every((clause) => clause.some(isTrue)) &&
      groups.every((members) => members.filter(isTrue).length <= 1);
    if (holds) return true;
  }
  return false;
}

function createSolver({ clauses, groups }: Formula): { solver: SatSolver; always: number } {
  const solver = new SatSolver({ maxSteps: 1_000_000 });
  for (let variable = 1; variable <= count; variable++) solver.addVariable();
  const always = solver.addVariable();
  solver.addClause([always]);
  for (const clause of clauses) solver.addClause(clause);
  for (const members of groups) solver.addAtMostOne(always, members);
  return { solver, always };
}

describe('SatSolver', () => {
  it('finds a model exactly if one exists, and a core that has none', () => {
    fc.assert(
      fc.property(formula, (given) => {
        const { solver } = createSolver(given);
        const result = solver.solve(given.assumptions);
        expect(result.satisfiable).toBe(isSatisfiable(given));
        if (result.satisfiable) {
          for (const item of given.assumptions) expect(solver.isTrue(item)).toBe(true);
          for (const clause of given.clauses) expect(clause.some((item) => solver.isTrue(item))).toBe(true);
          for (const members of given.groups)
            expect(members.filter((item) => solver.isTrue(item)).length).toBeLessThanOrEqual(1);
        } else {
          expect(given.assumptions).toEqual(expect.arrayContaining(result.core));
          expect(isSatisfiable({ ...given, assumptions: result.core })).toBe(false);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it('answers several questions with one solver', () => {
    fc.assert(
      fc.property(formula, fc.array(literal, { maxLength: 6 }), (given, questions) => {
        const { solver } = createSolver(given);
        for (const question of questions)
          expect(solver.solve([question]).satisfiable).toBe(
            isSatisfiable({ ...given, assumptions: [question] }),
          );
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    [{ maxSteps: 2000 }, 'more than 2000 steps'],
    [{ maxSteps: 1_000_000, maxMs: 0 }, 'longer than 0 s'],
  ])('stops at the limits %o', (limits, problem) => {
    // Nine pigeons in eight holes.
    const solver = new SatSolver(limits);
    const places = Array.from({ length: 9 }, () => Array.from({ length: 8 }, () => solver.addVariable()));
    const always = solver.addVariable();
    solver.addClause([always]);
    for (const holes of places) solver.addClause(holes);
    for (let hole = 0; hole < 8; hole++)
      solver.addAtMostOne(
        always,
        places.map((holes) => holes[hole] as number),
      );
    expect(() => solver.solve([])).toThrow(problem);
  });
});
