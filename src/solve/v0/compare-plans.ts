import { sortedByBytes } from '../../core/order.js';
import { getObjects, getText } from '../../document/json-fields.js';
import { OpmateError } from '../../core/errors.js';
import { type JsonValue, isJsonObject } from '../../document/json.js';

/** A difference of two predictions. */
export interface PlanDifference {
  namespace: string;
  kind: 'added' | 'removed' | 'changed';
  /** Package of a bundle, or `outcome`. */
  subject: string;
  /** Empty if added. */
  before: string;
  /** Empty if removed. */
  after: string;
}

/**
 * Compares two predictions as `predictCluster` returns them, read from JSON: per namespace its outcome, and per package the
 * bundles that plans install, in order. Throws OpmateError INVALID for another document.
 */
export function comparePlans(before: JsonValue, after: JsonValue): PlanDifference[] {
  const [older, newer] = [readPlans(before), readPlans(after)];
  const namespaces = sortedByBytes(new Set([...older.keys(), ...newer.keys()]));
  return namespaces.flatMap((namespace) => {
    const [from, to] = [older.get(namespace) ?? new Map(), newer.get(namespace) ?? new Map()];
    return sortedByBytes(new Set<string>([...from.keys(), ...to.keys()])).flatMap((subject) => {
      const [old, current] = [from.get(subject) ?? '', to.get(subject) ?? ''];
      if (old === current) return [];
      const kind = old === '' ? 'added' : current === '' ? 'removed' : 'changed';
      return [{ namespace, kind, subject, before: old, after: current }];
    });
  });
}

/** Returns per namespace the bundles by package, and the outcome. */
function readPlans(prediction: JsonValue): Map<string, Map<string, string>> {
  if (!isJsonObject(prediction) || !Array.isArray(prediction['namespaces']))
    throw new OpmateError('INVALID', 'not a prediction', {
      hint: 'use a prediction that was saved as JSON',
    });
  return new Map(
    getObjects(prediction, 'namespaces').map((item) => {
      const message = getText(item, 'message');
      const plans = new Map([['outcome', `${getText(item, 'end')}${message && `: ${message}`}`]]);
      for (const round of getObjects(item, 'rounds'))
        for (const install of getObjects(round, 'installs')) {
          const name = getText(install, 'package');
          const known = plans.get(name);
          const bundle = getText(install, 'name');
          plans.set(name, known === undefined ? bundle : `${known}, ${bundle}`);
        }
      return [getText(item, 'namespace'), plans];
    }),
  );
}
