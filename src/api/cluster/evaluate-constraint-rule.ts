import { type RuleProperty, compilePropertyRule } from '../../model/property-rule.js';
import { CelError } from '../../kube/cel.js';

/** Result of `evaluateConstraintRule`: the compile error, or a result for each list of properties. */
export type EvaluatedConstraintRule =
  { compileError: string } | { compileError?: undefined; results: { holds: boolean; error?: string }[] };

/**
 * Evaluates a CEL rule of an `olm.constraint` for lists of properties, one per bundle. A rule that fails for a list does
 * not hold for it, as in OLM's resolver.
 */
export function evaluateConstraintRule(
  rule: string,
  properties: readonly (readonly RuleProperty[])[],
): EvaluatedConstraintRule {
  try {
    const compiled = compilePropertyRule(rule);
    return { results: properties.map((list) => compiled.evaluate(list)) };
  } catch (error) {
    if (error instanceof CelError) return { compileError: error.message };
    throw error;
  }
}
