import { logDiagnostic } from '../../core/log.js';
import { sleep } from '../../core/concurrency.js';
import { type Diagnostic, formatDiagnostic } from '../../core/diagnostic.js';
import { CancelledError, OpmateError, UsageError, getMessage } from '../../core/errors.js';
import { type ApplyReport, applyPlan } from '../../cluster/apply.js';
import { type ApplyOptions, type ApplyPlan, planApply, withoutConflicts } from '../../cluster/plan-apply.js';
import type { RenderedDeployment } from '../../cluster/documents/render-deployments.js';
import { type ApplyDeploymentOptions, findApprovalFault, getApplyOptions } from './apply-deployment.js';
import type { Cluster } from './cluster.js';

/** An action of a watch, done or planned. */
export type WatchEvent =
  | { kind: 'paused'; deployment: RenderedDeployment }
  | { kind: 'not-approved'; deployment: RenderedDeployment; finding: Diagnostic }
  /** A render that is not on the cluster yet is applied next. */
  | { kind: 'planned'; deployment: RenderedDeployment; plan: ApplyPlan }
  | { kind: 'applied'; deployment: RenderedDeployment; report: ApplyReport };

/** Options of `watchDeployments`. */
export interface WatchDeploymentsOptions extends Pick<ApplyDeploymentOptions, 'force' | 'forceConflicts'> {
  /** Hashes of reviewed renders; default all renders. */
  approve?: readonly string[] | undefined;
  /** Milliseconds between two renders, at least 1000; default 5 minutes. */
  intervalMs?: number | undefined;
  /** Called with what is done, each time that it is; what does not change is repeated. */
  onEvent?: ((event: WatchEvent) => void | Promise<void>) | undefined;
}

const defaultIntervalMs = 5 * 60_000;
const minIntervalMs = 1000;

/**
 * Renders deployments again and again, applies what has changed, and applies again what has drifted, until the signal of
 * the session fires. Objects with fields that others manage are left as they are unless `forceConflicts` is set.
 * Warnings and failures go to the logger; after a failure the pause is doubled, up to 15 minutes. Throws UsageError.
 */
export async function watchDeployments(
  render: () => Promise<readonly RenderedDeployment[]>,
  cluster: Cluster,
  options: WatchDeploymentsOptions = {},
): Promise<void> {
  const { intervalMs = defaultIntervalMs } = options;
  if (intervalMs < minIntervalMs) throw new UsageError('--interval: minimum 1s');
  const { logger, signal = new AbortController().signal } = cluster.session;
  logger.log('info', 'watching', { every: `${intervalMs / 1000}s` });
  const warned = new Set<string>();
  const conflicting = new Map<string, readonly string[]>();
  await watch(
    async () => {
      const failures: string[] = [];
      for (const deployment of await render()) {
        for (const warning of deployment.warnings) {
          const text = formatDiagnostic(warning);
          if (!warned.has(text)) logDiagnostic(logger, warning);
          warned.add(text);
        }
        const key = `${deployment.installNamespace}/${deployment.name}`;
        const warnOfConflicts = (conflicts: readonly string[]): void => {
          // A conflict that returns after it was gone is logged again.
          for (const conflict of conflicts)
            if (conflicting.get(key)?.includes(conflict) !== true) logger.log('warn', conflict);
          conflicting.set(key, conflicts);
        };
        try {
          await applyAgain(deployment, cluster, options, warnOfConflicts);
        } catch (error) {
          if (!(error instanceof OpmateError) || error.code === 'CANCELLED') throw error;
          failures.push(error.message);
        }
      }
      if (failures.length > 0) throw new OpmateError('INVALID', failures.join('; '));
    },
    { intervalMs, sleep, logger, signal },
  );
  logger.log('info', 'stopped');
}

async function applyAgain(
  deployment: RenderedDeployment,
  cluster: Cluster,
  { approve, onEvent, ...settings }: WatchDeploymentsOptions,
  warn: (warnings: readonly string[]) => void,
): Promise<void> {
  const { name, findings, isPaused } = deployment;
  if (findings.length > 0) throw failed(findings);
  if (isPaused) return onEvent?.({ kind: 'paused', deployment });
  const finding = approve && findApprovalFault(deployment, approve);
  if (finding !== undefined) return onEvent?.({ kind: 'not-approved', deployment, finding });
  const { kubectl } = cluster;
  const how = getApplyOptions(cluster, settings);
  const planned = await planApply(kubectl, deployment, how);
  const plan = planned.findings.length === 0 ? planned : withoutConflicts(planned);
  if (plan === undefined) throw failed(planned.findings);
  warn(
    [...plan.conflicts.values()].map(
      (conflict) => `${name}: left as it is: ${formatDiagnostic(conflict)}; ${conflict.hint ?? ''}`,
    ),
  );
  if (plan.current?.hash !== deployment.hash) await onEvent?.({ kind: 'planned', deployment, plan });
  const report = await applyPlan(kubectl, plan, how);
  const { revision, created, changed, removed } = report;
  if (revision === undefined && created.length + changed.length + removed.length === 0) return;
  await onEvent?.({ kind: 'applied', deployment, report });
}

function failed(findings: readonly Diagnostic[]): OpmateError {
  return new OpmateError('INVALID', findings.map(formatDiagnostic).join('; '));
}

type WatchOptions = Pick<ApplyOptions, 'sleep' | 'logger'> & { intervalMs: number; signal: AbortSignal };

const firstDelayMs = 10_000;
const longestDelayMs = 15 * 60_000;

/** Returns the delay after consecutive failures: from 10 s, doubled each time, to 15 min. */
export function delayAfter(failures: number, intervalMs: number): number {
  const longest = Math.max(intervalMs, longestDelayMs);
  return Math.min(longest, Math.min(intervalMs, firstDelayMs) * 2 ** Math.min(failures - 1, 30));
}

/**
 * Repeats `work` until `signal` is aborted, with a pause after each run, or that of `delayAfter` after a failure,
 * which is logged. Usage errors and defects end it.
 */
export async function watch(
  work: () => Promise<void>,
  { intervalMs, sleep: pause, logger, signal }: WatchOptions,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    let delay = intervalMs;
    try {
      await work();
      failures = 0;
    } catch (error) {
      if (error instanceof CancelledError) throw error;
      if (!(error instanceof OpmateError) || error.code === 'USAGE' || error.code === 'INTERNAL') throw error;
      failures++;
      delay = delayAfter(failures, intervalMs);
      logger.log('error', `${getMessage(error)}: tried again in ${Math.ceil(delay / 1000)} s`);
    }
    await pause(delay, signal).catch(() => undefined);
  }
}
