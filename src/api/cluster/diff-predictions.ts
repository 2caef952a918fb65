import { inContext } from '../../core/diagnostics-error.js';
import { parseGoJson } from '../../document/go-json.js';
import { type PlanDifference, comparePlans } from '../../solve/v0/compare-plans.js';

/** A saved prediction with its name in messages. */
export interface SavedPrediction {
  name: string;
  text: string;
}

/** Compares two saved plans, JSON of `predictCluster` or `planClusterUpgrade`. Throws OpmateError INVALID for other documents. */
export function diffPredictions(before: SavedPrediction, after: SavedPrediction): PlanDifference[] {
  const read = ({ name, text }: SavedPrediction): ReturnType<typeof parseGoJson> =>
    inContext({ subject: name }, () => {
      const value = parseGoJson(text);
      comparePlans(value, value);
      return value;
    });
  return comparePlans(read(before), read(after));
}
