import { Kubectl } from '../../cluster/kubectl.js';
import type { Session } from '../../source/session.js';

/** Options of `openCluster`. */
export interface ClusterOptions {
  /** Program to reach the cluster with; default `kubectl` of PATH. */
  kubectl?: string | undefined;
  /** File; default that of the environment. */
  kubeconfig?: string | undefined;
  /** Context of the kubeconfig; default its current one. */
  context?: string | undefined;
  /** User to act as, as with `kubectl --as`. */
  as?: string | undefined;
  /** Groups to act as, with `as`. */
  asGroups?: readonly string[] | undefined;
}

/** A cluster that deployments are applied to. */
export interface Cluster {
  readonly kubectl: Kubectl;
  readonly session: Session;
}

/**
 * Returns the cluster that kubectl 1.18 or later reaches with the environment of the session. kubectl is started with the
 * first request and ends when the signal of the session fires. Functions that use the cluster throw OpmateError
 * UNSUPPORTED if kubectl is missing or too old.
 */
export function openCluster(session: Session, options: ClusterOptions = {}): Cluster {
  const { kubectl = 'kubectl', kubeconfig, context, as, asGroups } = options;
  const { environment, workingDirectory, logger, signal } = session;
  return {
    kubectl: new Kubectl({
      program: kubectl,
      kubeconfig,
      context,
      as,
      asGroups,
      environment,
      workingDirectory,
      logger,
      signal,
    }),
    session,
  };
}
