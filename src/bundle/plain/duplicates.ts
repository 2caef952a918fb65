import { isDeepStrictEqual } from 'node:util';
import { type PlainObject, getGroup } from '../../kube/object.js';
import type { Report } from '../report.js';

/**
 * Reports the objects with a name that occur twice with different content. They are findings, but warnings if one of
 * them is generated: real bundles contain own services and accounts, which operator-controller accepts.
 */
export function checkDuplicates(objects: readonly PlainObject[], report: Report): void {
  const seen = new Map<string, PlainObject>();
  for (const object of objects) {
    const { apiVersion, kind, namespace, name, origin } = object;
    const key = JSON.stringify([getGroup(apiVersion), kind, namespace, name]);
    const first = seen.get(key);
    if (first === undefined) seen.set(key, object);
    if (first === undefined || name === '' || isDeepStrictEqual(first.load(), object.load())) continue;
    const isHarmless = first.isGenerated || object.isGenerated;
    const problem = `duplicate, from ${first.origin} and from ${origin}`;
    report[isHarmless ? 'warn' : 'fault']('duplicate-object', problem, {
      subject: `${kind} "${name}"${namespace === '' ? '' : ` in namespace "${namespace}"`}`,
      hint: 'rename or remove one of them',
    });
  }
}
