/** The control plane as tests use it. */
import { execFileSync } from 'node:child_process';
import { inject } from 'vitest';

let namespaces = 0;

export interface World {
  /** Runs kubectl as the administrator, with objects on standard input. */
  kubectl(args: readonly string[], input?: object | string): string;
  /** Returns an object as it is on the cluster; undefined if missing. */
  get(kind: string, name: string, namespace?: string): KubeObject | undefined;
  /** Creates a namespace, empty and unique. */
  newNamespace(): string;
}

export interface KubeObject {
  metadata: {
    uid: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    ownerReferences?: { kind: string; name: string }[];
    finalizers?: string[];
  };
  data?: Record<string, string>;
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
}

export function useCluster(): World {
  const kubectl = (args: readonly string[], input: object | string = ''): string =>
    execFileSync(inject('kubectl'), [`--kubeconfig=${inject('kubeconfig')}`, ...args], {
      encoding: 'utf8',
      input: typeof input === 'string' ? input : JSON.stringify(input),
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  return {
    kubectl,
    get(kind, name, namespace = '') {
      const scope = namespace === '' ? [] : ['-n', namespace];
      const text = kubectl(['get', kind, name, ...scope, '--ignore-not-found', '-o', 'json']);
      return text === '' ? undefined : (JSON.parse(text) as KubeObject);
    },
    newNamespace() {
      const name = `test-${process.pid}-${++namespaces}`;
      kubectl(['create', 'namespace', name]);
      return name;
    },
  };
}
