import type { Right } from '../../bundle/plain/rights/rights.js';
import type { Subject } from '../../bundle/plain/rights/subjects.js';

/** Titles of the columns of `rightCells`. */
export const rightHeader = ['ACCOUNT', 'NAMESPACE', 'GROUP', 'RESOURCE', 'VERBS', 'RISKS'];

/** A right as a row of a table. */
export function rightCells(right: Right): string[] {
  return [
    describeSubject(right),
    right.namespace === '' ? '(all)' : right.namespace,
    right.group === '' ? '(core)' : right.group,
    right.resource + (right.names.length > 0 ? ` [${right.names.join(' ')}]` : ''),
    right.verbs.length === 0 ? '(not in the bundle)' : right.verbs.join(','),
    right.risks.join(','),
  ];
}

/** Returns the subject as text: `NAMESPACE/NAME` of a service account, `Group NAME`. */
export function describeSubject({ kind, account, accountNamespace }: Subject): string {
  return kind === undefined ? `${accountNamespace}/${account}` : `${kind} ${account}`;
}
