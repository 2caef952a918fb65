import { type JsonValue, isJsonObject } from '../../../document/json.js';

/** Subject of a role binding. */
export interface Subject {
  /** `User`, `Group` or another kind; undefined for service accounts. */
  kind?: string;
  /** Name; `*` for all service accounts of the namespace. */
  account: string;
  /** Namespace of a service account, `*` for all; empty for users and groups. */
  accountNamespace: string;
}

const accountUser = /^system:serviceaccount:([^:]+):([^:]+)$/;
const accountGroup = /^system:serviceaccounts(?::(.+))?$/;

/**
 * Returns the subject of a binding in this namespace; users and groups that stand for service accounts are those
 * accounts. Undefined for a value that is no subject. (Source: service account names of Kubernetes.)
 */
export function readSubject(value: JsonValue, namespace: string): Subject | undefined {
  if (!isJsonObject(value)) return undefined;
  const { kind, name, namespace: own } = value;
  if (typeof kind !== 'string' || typeof name !== 'string') return undefined;
  if (kind === 'ServiceAccount') {
    return { account: name, accountNamespace: typeof own === 'string' && own !== '' ? own : namespace };
  }
  if (kind === 'User') {
    const [, accountNamespace, account] = accountUser.exec(name) ?? [];
    if (accountNamespace !== undefined && account !== undefined) return { account, accountNamespace };
  }
  const group = kind === 'Group' ? accountGroup.exec(name) : null;
  if (group !== null) return { account: '*', accountNamespace: group[1] ?? '*' };
  return { kind, account: name, accountNamespace: '' };
}

/** Reports whether a subject is other than one service account. */
export function isSharedSubject({ kind, account }: Subject): boolean {
  return kind !== undefined || account === '*';
}
