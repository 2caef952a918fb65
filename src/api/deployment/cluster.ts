import { Kubectl } from '../../deployment/cluster/kubectl.js';
import type { Session } from '../../source/session.js';

/** Options of `openCluster`. */
export interface ClusterOptions {
  /** Program to reach the cluster with; default `kubectl` of PATH. */
  kubectl?: string | undefined;
  /** File; default that of the environment. */
  kubeconfig?: string | undefined;
  /** Context of the kubeconfig; default its current one. */
  context?: string | undefined;
}

/** A cluster that deployments are applied to. */
export interface Cluster {
  readonly kubectl: Kubectl;
  readonly session: Session;
}

/**
 * Names the cluster to work on, reached by kubectl 1.18 or newer with the environment of the session; nothing is
 * started before the first request. What is asked of it throws OpmateError UNSUPPORTED where kubectl is missing or too
 * old, and ends when the signal of the session fires.
 */
export function openCluster(session: Session, options: ClusterOptions = {}): Cluster {
  const { kubectl = 'kubectl', kubeconfig, context } = options;
  const { environment, workingDirectory, logger, signal } = session;
  return {
    kubectl: new Kubectl({
      ...{ program: kubectl, kubeconfig, context },
      ...{ environment, workingDirectory, logger, signal },
    }),
    session,
  };
}
