import { logDiagnostic } from '../../core/log.js';
import { sleep } from '../../core/concurrency.js';
import { type Diagnostic, formatDiagnostic } from '../../core/diagnostic.js';
import { CancelledError, OpmateError, UsageError, getMessage } from '../../core/errors.js';
import { type ApplyReport, applyPlan } from '../../cluster/apply/apply.js';
import type { DeletionReport } from '../../cluster/delete/delete.js';
import type { RenderedDeployment } from '../../cluster/documents/render-deployments.js';
import type { InventoryPlace } from '../../cluster/inventory.js';
import { describeId } from '../../cluster/objects.js';
import type { ApplyOptions, ApplyPlan } from '../../cluster/apply/plan-types.js';
import {
  type PlanDeploymentOptions,
  findApprovalFault,
  getApplyOptions,
  planDeployment,
} from './apply-deployment.js';
import type { Cluster } from './cluster.js';
import { deleteDeployment } from './delete-deployment.js';

/** An action of a watch, done or planned. */
export type WatchEvent =
  | { kind: 'paused'; deployment: RenderedDeployment }
  | { kind: 'not-approved'; deployment: RenderedDeployment; finding: Diagnostic }
  /** A source that is not on the cluster yet is applied next. */
  | { kind: 'planned'; deployment: RenderedDeployment; plan: ApplyPlan }
  | { kind: 'applied'; deployment: RenderedDeployment; report: ApplyReport }
  /** A deployment that was removed from the documents was deleted. */
  | { kind: 'deleted'; place: InventoryPlace; report: DeletionReport };

/** Options of `watchDeployments`. */
export interface WatchDeploymentsOptions extends Omit<PlanDeploymentOptions, 'adopt'> {
  /** Approval hashes of reviewed plans; default all plans. */
  approve?: readonly string[] | undefined;
  /** Milliseconds between two renders, at least 1000; default 5 minutes. */
  intervalMs?: number | undefined;
  /** Called with what is done, each time that it is; what does not change is repeated. */
  onEvent?: ((event: WatchEvent) => void | Promise<void>) | undefined;
}

const defaultIntervalMs = 5 * 60_000;
const minIntervalMs = 1000;

/**
 * Renders deployments again and again, applies what has changed, restores what has drifted, and deletes deployments that
 * the documents no longer contain, until the signal of the session fires. Fields that others have changed are restored as
 * `heal` says. With `approve`, a render stays approved after its plan was applied, and nothing is deleted. Warnings and
 * failures go to the logger; after a failure the pause is doubled, up to 15 minutes. Throws UsageError.
 */
export async function watchDeployments(
  render: () => Promise<readonly RenderedDeployment[]>,
  cluster: Cluster,
  options: WatchDeploymentsOptions = {},
): Promise<void> {
  const { intervalMs = defaultIntervalMs } = options;
  if (intervalMs < minIntervalMs) throw new UsageError('options.intervalMs: minimum 1s');
  const { logger, signal = new AbortController().signal } = cluster.session;
  logger.log('info', 'watching', { every: `${intervalMs / 1000}s` });
  const round = createRound(cluster, options);
  await watch(async () => round(await render()), { intervalMs, sleep, logger, signal });
  logger.log('info', 'stopped');
}

/** Memory of a watch. */
interface WatchState {
  warned: Set<string>;
  conflicting: Map<string, readonly string[]>;
  /** Renders whose plan was approved and applied: `NAMESPACE/NAME HASH`. */
  approved: Set<string>;
  /** Deployments of the last render, by `NAMESPACE/NAME`. */
  seen: Map<string, InventoryPlace>;
}

/** Returns a function that applies one render, and throws its failures together. */
function createRound(
  cluster: Cluster,
  options: WatchDeploymentsOptions,
): (deployments: readonly RenderedDeployment[]) => Promise<void> {
  const state: WatchState = {
    warned: new Set(),
    conflicting: new Map(),
    approved: new Set(),
    seen: new Map(),
  };
  return async (deployments) => {
    const failures: string[] = [];
    const attempt = async (work: () => Promise<void>): Promise<void> => {
      try {
        await work();
      } catch (error) {
        if (!(error instanceof OpmateError) || error.code === 'CANCELLED') throw error;
        failures.push(error.message);
      }
    };
    for (const deployment of deployments) {
      logNewWarnings(deployment, cluster, state);
      await attempt(() => applyAgain(deployment, cluster, options, state));
    }
    const places = deployments.map(({ name, installNamespace }) => ({ name, namespace: installNamespace }));
    await attempt(() => deleteRemoved(places, cluster, options, state));
    if (failures.length > 0) throw new OpmateError('INVALID', failures.join('; '));
  };
}

function logNewWarnings(
  { warnings }: RenderedDeployment,
  { session: { logger } }: Cluster,
  { warned }: WatchState,
): void {
  for (const warning of warnings) {
    const text = formatDiagnostic(warning);
    if (!warned.has(text)) logDiagnostic(logger, warning);
    warned.add(text);
  }
}

async function applyAgain(
  deployment: RenderedDeployment,
  cluster: Cluster,
  { approve, onEvent, ...settings }: WatchDeploymentsOptions,
  state: WatchState,
): Promise<void> {
  const { name, installNamespace, hash, findings, isPaused } = deployment;
  if (findings.length > 0) throw failed(findings);
  if (isPaused) return onEvent?.({ kind: 'paused', deployment });
  const { plan } = await planDeployment(deployment, cluster, settings);
  if (plan.findings.length > 0) throw failed(plan.findings);
  const key = `${installNamespace}/${name} ${hash}`;
  const isHarmless = plan.changes.every(({ change }) => !['remove', 'release', 'take over'].includes(change));
  const isApproved = approve === undefined || (isHarmless && state.approved.has(key));
  const finding = isApproved ? undefined : findApprovalFault(name, plan.approval, approve ?? []);
  if (finding !== undefined) return onEvent?.({ kind: 'not-approved', deployment, finding });
  warnOfLeftFields(plan, cluster, state);
  if (!plan.isCurrent) await onEvent?.({ kind: 'planned', deployment, plan });
  const report = await applyPlan(cluster.kubectl, plan, getApplyOptions(cluster, settings));
  state.approved.add(key);
  const { revision, created, changed, removed } = report;
  if (revision === undefined && created.length + changed.length + removed.length === 0) return;
  await onEvent?.({ kind: 'applied', deployment, report });
}

/** Logs fields that others have changed and that stay so; one that returns after it was gone is logged again. */
function warnOfLeftFields(
  { place, changes }: ApplyPlan,
  { session: { logger } }: Cluster,
  state: WatchState,
): void {
  const key = `${place.namespace}/${place.name}`;
  const texts = changes
    .filter(({ change }) => change === 'leave')
    .map(({ id, fields }) => {
      const managers = new Set(fields.flatMap((field) => field.managers.map((manager) => manager.name)));
      const paths = fields.map(({ path }) => path).join(', ');
      return `${place.name}: left as it is: ${describeId(id)}: ${paths} changed by ${[...managers].join(', ')}`;
    });
  for (const text of texts) if (state.conflicting.get(key)?.includes(text) !== true) logger.log('warn', text);
  state.conflicting.set(key, texts);
}

async function deleteRemoved(
  places: readonly InventoryPlace[],
  cluster: Cluster,
  { approve, onEvent }: WatchDeploymentsOptions,
  state: WatchState,
): Promise<void> {
  const now = new Map(places.map((place) => [`${place.namespace}/${place.name}`, place]));
  for (const [key, place] of state.seen) {
    if (now.has(key)) continue;
    const deleted = await deleteDeployment(place, cluster, { approve: approve ?? (() => true) });
    if (deleted.state === 'deleted') await onEvent?.({ kind: 'deleted', place, report: deleted.report });
    else if (deleted.state === 'refused') throw failed(deleted.findings);
    state.seen.delete(key);
  }
  for (const [key, place] of now) state.seen.set(key, place);
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
