import {
  type AppliedDeployment,
  type ApplyDeploymentOptions,
  type PlanDeploymentOptions,
  checkDeployments,
} from '../../api/deployment/apply-deployment.js';
import { type Cluster, openCluster } from '../../api/deployment/cluster.js';
import type { Adoption } from '../../cluster/apply/adopt.js';
import type { RenderedDeployment } from '../../cluster/documents/render-deployments.js';
import { toPlanDocument, toReportDocument } from './data.js';
import type { ApplyPlan } from '../../cluster/apply/plan-types.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import type { FlagValues } from '../command/flags.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { askOnTerminal } from '../input.js';
import { encodeData } from '../reports/encode-data.js';
import type { CommandSession } from '../session.js';
import { printFindings, logWarnings } from '../bundle/findings.js';
import {
  type approvalFlags,
  type clusterFlags,
  type planFlags,
  type waitFlags,
  toClusterOptions,
} from './flags.js';
import { planText, reportText, unreadyText } from './plan-text.js';

/** Output format of commands on a cluster. */
export type DataFormat = 'text' | 'json' | 'yaml';

/** Prints warnings and findings of renders; returns false for findings. */
export async function areSound(
  context: CommandContext,
  session: CommandSession,
  deployments: readonly RenderedDeployment[],
): Promise<boolean> {
  for (const { warnings } of deployments) logWarnings(session, warnings);
  const findings = checkDeployments(deployments);
  await printFindings(context, findings);
  return findings.length === 0;
}

/** Opens the cluster that the flags name. Throws UsageError for empty values. */
export function readCluster(options: FlagValues<typeof clusterFlags>, session: CommandSession): Cluster {
  const { kubectl, kubeconfig, context, as } = options;
  for (const [flag, value] of [
    ['--kubectl', kubectl],
    ['--kubeconfig', kubeconfig],
    ['--context', context],
    ['--as', as],
  ]) {
    if (value === '' || value?.includes('\0') === true) throw new UsageError(`${flag}: is empty`);
  }
  return openCluster(session, toClusterOptions(options));
}

/** Returns the changes that the flags allow. */
export function readPlanOptions({
  heal,
  forceConflicts,
  takeOver,
  force,
  crdUpgradeSafety,
  optionalKinds,
}: FlagValues<typeof planFlags>): PlanDeploymentOptions {
  return {
    heal,
    forceConflicts,
    takeOver,
    force,
    isCrdUpgradeChecked: crdUpgradeSafety === 'Strict',
    optionalKinds: optionalKinds === true ? 'all' : new Set(optionalKinds),
  };
}

/** Returns how a plan is shown and approved: by hash, by a flag, or on the terminal. */
export function readApproval(
  context: CommandContext,
  { approve, yes }: Partial<FlagValues<typeof approvalFlags>>,
  { signal }: CommandSession,
  output: DataFormat,
): Pick<ApplyDeploymentOptions, 'approve' | 'onPlanned'> {
  // Without the flag, as for rollbacks, only a reviewed hash or a terminal approves.
  const offersYes = yes !== undefined;
  return {
    onPlanned: (plan, adoption) =>
      printPlan(context, plan, adoption, {
        output,
        signal,
        isReviewed: yes === true || approve !== undefined,
      }),
    approve:
      approve ??
      (yes === true
        ? () => true
        : ({ place, approval }) => confirm(context, { verb: 'apply', ...place, approval, offersYes })),
  };
}

/** Prints a plan: text on stdout; with data on stdout, the plan is its own only where nothing is applied yet. */
async function printPlan(
  context: CommandContext,
  plan: ApplyPlan,
  adoption: Adoption | undefined,
  {
    output,
    signal,
    isReviewed,
  }: { output: DataFormat; signal: AbortSignal | undefined; isReviewed: boolean },
): Promise<void> {
  if (output === 'text') await writeAll(context.stdout, planText(plan, adoption), signal);
  else if (!isReviewed) await writeAll(context.stderr, planText(plan, adoption), signal);
}

/** Prints a plan as text or data. */
export async function writePlan(
  context: CommandContext,
  { plan, adoption }: { plan: ApplyPlan; adoption: Adoption | undefined },
  output: DataFormat,
  { signal }: CommandSession,
): Promise<void> {
  const text =
    output === 'text' ? planText(plan, adoption) : encodeData(toPlanDocument(plan, adoption), output);
  await writeAll(context.stdout, text, signal);
}

/**
 * Returns the time to wait in milliseconds; undefined for not at all. Terminals wait by default; without a time-out, as
 * long as the document allows.
 */
export function readWait(
  { wait, timeout }: FlagValues<typeof waitFlags>,
  { stderr }: CommandContext,
  { progressDeadlineMinutes: minutes }: Pick<RenderedDeployment, 'progressDeadlineMinutes'> = {},
): number | undefined {
  const isWaiting = wait ?? (timeout !== undefined || stderr.isTTY === true);
  const allowedMs = minutes === undefined ? defaultTimeoutMs : minutes * 60_000;
  return isWaiting ? (timeout ?? allowedMs) : undefined;
}

const defaultTimeoutMs = 5 * 60_000;

/** Prints the result for a deployment. Returns the exit code: 1 if objects are not ready. */
export async function printApplied(
  context: CommandContext,
  name: string,
  applied: AppliedDeployment,
  { signal }: CommandSession,
  output: DataFormat = 'text',
): Promise<number> {
  switch (applied.state) {
    case 'applied': {
      const { plan, report, unready } = applied;
      const text =
        output === 'text'
          ? reportText(name, report)
          : encodeData(toReportDocument(plan, report, unready), output);
      await writeAll(context.stdout, text, signal);
      if (unready.length === 0) return exitCodes.done;
      await writeAll(context.stderr, unreadyText(name, unready), signal);
      return exitCodes.failed;
    }
    case 'paused':
      return exitCodes.done;
    case 'declined':
      throw new OpmateError('INVALID', `${name}: not applied: declined`);
    case 'refused':
      await printFindings(context, applied.findings);
      return exitCodes.findings;
  }
}

interface Question {
  verb: 'apply' | 'delete';
  name: string;
  approval: string;
  /** The command has --yes. */
  offersYes: boolean;
}

/** Asks on the terminal whether to change a deployment. Throws UsageError without a terminal. */
export async function confirm(
  context: CommandContext,
  { verb, name, approval, offersYes }: Question,
): Promise<boolean> {
  const question = verb === 'apply' ? `apply ${name} to the cluster?` : `delete ${name}?`;
  const reply = await askOnTerminal(context, question);
  if (reply !== undefined) return reply;
  const state = verb === 'apply' ? 'not applied' : 'not deleted';
  throw new UsageError(`${name}: ${state}: no terminal to confirm`, {
    hint: `review the changes, then add --approve ${approval}${offersYes ? ', or --yes' : ''}`,
  });
}
