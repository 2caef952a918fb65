import { isDeepStrictEqual } from 'node:util';
import { type PlainObject, getGroup } from '../../kube/object.js';
import type { Diagnostic } from '../../core/diagnostic.js';

/**
 * Objects that would be applied twice, with different content, so that the order would decide: findings where
 * both are written down, warnings where one of them is generated, for real bundles bring their own services
 * and accounts, and operator-controller lets them. Equal ones, as equal permissions make them, do no harm.
 */
export function findDuplicates(objects: readonly PlainObject[]): {
  findings: Diagnostic[];
  warnings: Diagnostic[];
} {
  const seen = new Map<string, PlainObject>();
  const findings: Diagnostic[] = [];
  const warnings: Diagnostic[] = [];
  for (const object of objects) {
    const group = getGroup(object.apiVersion);
    const key = JSON.stringify([group, object.kind, object.namespace, object.name]);
    const first = seen.get(key);
    if (first === undefined) seen.set(key, object);
    else if (!isDeepStrictEqual(first.load(), object.load())) {
      const where = object.namespace === '' ? '' : ` in namespace "${object.namespace}"`;
      const isHarmless = first.isGenerated || object.isGenerated;
      (isHarmless ? warnings : findings).push({
        severity: isHarmless ? 'warning' : 'error',
        code: 'duplicate-object',
        subject: `${object.kind} "${object.name}"${where}`,
        problem: `duplicate, from ${first.origin} and from ${object.origin}`,
        hint: 'rename or remove one of them',
      });
    }
  }
  return { findings, warnings };
}
