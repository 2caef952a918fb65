import { evaluateConstraintRule } from '../../../dist/api/cluster/evaluate-constraint-rule.js';

/** Evaluates a CEL rule of a constraint for each list of properties. */
export async function answer({ id, rule, properties }) {
  const result = evaluateConstraintRule(rule, properties);
  if (result.compileError !== undefined) return { id, compileError: result.compileError };
  return {
    id,
    holds: result.results.map(({ holds }) => holds),
    errors: result.results.map(({ error = '' }) => error),
  };
}
