import { getOrAdd } from '../../core/groups.js';
import { sortedByBytes } from '../../core/order.js';
import { getObjects, getText } from '../../document/json-fields.js';
import { OpmateError } from '../../core/errors.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';

/** A difference of two plans. */
export interface PlanDifference {
  /** Empty for the cluster. */
  namespace: string;
  kind: 'added' | 'removed' | 'changed';
  /** Package of a bundle, `outcome`, or an update. */
  subject: string;
  /** Empty if added. */
  before: string;
  /** Empty if removed. */
  after: string;
}

/**
 * Compares two plans as `predictCluster` or `planClusterUpgrade` return them, read from JSON: per namespace its outcome, and
 * per package the bundles that plans install, in order; of updates the status and the bundles before and after each. Throws OpmateError INVALID for another document.
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

/** Returns per namespace what a plan says about each subject. */
function readPlans(plan: JsonValue): Map<string, Map<string, string>> {
  if (isJsonObject(plan) && Array.isArray(plan['namespaces'])) return readPrediction(plan);
  if (isJsonObject(plan) && Array.isArray(plan['hops'])) return readUpgrade(plan);
  throw new OpmateError('INVALID', 'neither a prediction nor a plan of updates', {
    hint: 'use a plan that was saved as JSON',
  });
}

/** Returns the bundles by package, and the outcome. */
function readPrediction(prediction: JsonObject): Map<string, Map<string, string>> {
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

/** Returns by update and package the status, the bundles before and after, and by update the releases. */
function readUpgrade(plan: JsonObject): Map<string, Map<string, string>> {
  const namespaces = new Map<string, Map<string, string>>();
  const add = (namespace: string, subject: string, text: string): void => {
    getOrAdd(namespaces, namespace, () => new Map<string, string>()).set(subject, text);
  };
  for (const hop of getObjects(plan, 'hops')) {
    const update = `${getText(hop, 'from')} to ${getText(hop, 'to')}`;
    const releases = getObjects(hop, 'releases').map((release) => getText(release, 'version'));
    add('', update, `${hop['isBlocked'] === true ? 'blocked' : 'possible'} ${releases.join(', ')}`.trim());
    for (const operator of getObjects(hop, 'operators')) {
      const positions = ['before', 'after'].map((phase) => {
        const [bundle, channel] = [getText(operator, phase, 'bundle'), getText(operator, phase, 'channel')];
        return bundle === '' ? '-' : `${bundle}${channel && ` (${channel})`}`;
      });
      const subject = `${update}: ${getText(operator, 'package') || getText(operator, 'installed', 'bundle')}`;
      add(getText(operator, 'namespace'), subject, `${getText(operator, 'status')} ${positions.join(', ')}`);
    }
  }
  return namespaces;
}
