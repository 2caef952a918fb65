import { isDeepStrictEqual } from 'node:util';
import { type PlainObject, getGroup } from '../../kube/object.js';
import type { Diagnostic } from '../../core/diagnostic.js';

/**
 * Returns the objects that occur twice with different content. They are findings, but warnings if one of them is
 * generated: real bundles contain own services and accounts, which operator-controller accepts.
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
