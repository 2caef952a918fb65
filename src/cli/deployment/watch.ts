import type { FlagValues } from '../command/flags.js';
import type { applyFlags } from './flags.js';
import { UsageError } from '../../core/errors.js';
import { OpmateError } from '../../core/errors.js';
import { formatDiagnostic } from '../../core/diagnostic.js';
import { applyPlan, planApply, withoutConflicts } from '../../deployment/cluster/apply.js';
import type { Kubectl } from '../../deployment/cluster/kubectl.js';
import { watch } from '../../deployment/cluster/watch.js';
import type { RenderedDeployment } from '../../deployment/rendered-deployment.js';
import type { CommandContext } from '../context.js';
import { renderDeploymentFile } from './input.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import type { CommandSession } from '../session.js';
import { getApplyOptions, approvalFault, pausedText, planText, reportText, sleep } from './approval.js';

const defaultInterval = 5 * 60_000;
const shortestInterval = 1000;

/**
 * `opmate bundle deployment apply --watch`: renders anew on an interval, applies what has changed, and applies again
 * what has drifted, until it is told to stop. Failures are told, and tried again later and later.
 */
export async function watchDeployments(
  context: CommandContext,
  kubectl: Kubectl,
  options: FlagValues<typeof applyFlags>,
  session: CommandSession,
): Promise<void> {
  const { interval = defaultInterval, file = [] } = options;
  if (options.yes !== true && options.approve === undefined) {
    throw new UsageError('--watch: no terminal to confirm each change', {
      hint: 'add --yes, or --approve HASH to apply only reviewed changes',
    });
  }
  if (file.includes('-')) throw new UsageError('--watch: standard input can be read only once');
  if (interval < shortestInterval) throw new UsageError('--interval: minimum 1s');
  const { logger, signal = context.signal } = session;
  logger.log('info', 'watching', { every: `${interval / 1000}s` });
  /** What was told last of each deployment, so that nothing is told again and again. */
  const reported = new Map<string, string>();
  const warned = new Set<string>();
  const conflicting = new Map<string, readonly string[]>();
  await watch(
    async () => {
      const deployments = await renderDeploymentFile(context, session, options);
      const failures: string[] = [];
      for (const deployment of deployments) {
        for (const warning of deployment.warnings.map(formatDiagnostic)) {
          if (!warned.has(warning)) logger.log('warn', warning);
          warned.add(warning);
        }
        const key = `${deployment.installNamespace}/${deployment.name}`;
        const warnOfConflicts = (conflicts: readonly string[]): void => {
          // One that comes back after it was gone is told again.
          for (const conflict of conflicts)
            if (conflicting.get(key)?.includes(conflict) !== true) logger.log('warn', conflict);
          conflicting.set(key, conflicts);
        };
        const tell = async (text: string): Promise<void> => {
          if (reported.get(key) === text) return;
          reported.set(key, text);
          await writeAll(context.stdout, printable(`${text.trimEnd()}\n`), signal);
        };
        try {
          await applyAgain(context, kubectl, deployment, options, session, tell, warnOfConflicts);
        } catch (error) {
          if (!(error instanceof OpmateError) || error.code === 'CANCELLED') throw error;
          failures.push(error.message);
        }
      }
      if (failures.length > 0) throw new OpmateError('INVALID', failures.join('; '));
    },
    { intervalMs: interval, sleep, logger, signal },
  );
  logger.log('info', 'stopped');
}

async function applyAgain(
  context: CommandContext,
  kubectl: Kubectl,
  deployment: RenderedDeployment,
  options: FlagValues<typeof applyFlags>,
  session: CommandSession,
  tell: (text: string) => Promise<void>,
  warn: (warnings: readonly string[]) => void,
): Promise<void> {
  const { name, findings, isPaused } = deployment;
  if (findings.length > 0) throw failed(findings.map(formatDiagnostic));
  if (isPaused) return tell(pausedText(deployment));
  const mismatch = options.approve && approvalFault(deployment, options.approve);
  if (mismatch !== undefined) return tell(`${formatDiagnostic(mismatch)}: not applied`);
  const how = getApplyOptions(context, options, session);
  const planned = await planApply(kubectl, deployment, how);
  const plan = planned.findings.length === 0 ? planned : withoutConflicts(planned);
  if (plan === undefined) throw failed(planned.findings.map(formatDiagnostic));
  const conflicts = [...plan.conflicts.values()].map(
    (finding) => `${name}: left as it is: ${formatDiagnostic(finding)}; ${finding.hint ?? ''}`,
  );
  warn(conflicts);
  if (plan.current?.hash !== deployment.hash) await tell(planText(plan));
  const report = await applyPlan(kubectl, plan, how);
  const { revision, created, changed, removed } = report;
  if (revision === undefined && created.length + changed.length + removed.length === 0) return;
  // Told each time that it happens.
  await tell('');
  await tell(`${context.now().toISOString()} ${reportText(name, report)}`);
}

function failed(messages: readonly string[]): OpmateError {
  return new OpmateError('INVALID', messages.join('; '));
}
