import type { FlagValues } from '../command/flags.js';
import type { applyFlags } from './flags.js';
import type { Cluster } from '../../api/deployment/cluster.js';
import { type WatchEvent, watchDeployments } from '../../api/deployment/watch-deployments.js';
import { formatDiagnostic } from '../../core/diagnostic.js';
import { UsageError } from '../../core/errors.js';
import type { CommandContext } from '../context.js';
import { renderInput } from './input.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import type { CommandSession } from '../session.js';
import { readPlanOptions } from './approval.js';
import { deletedText, pausedText, planText, reportText } from './plan-text.js';

type WatchValues = Omit<FlagValues<typeof applyFlags>, 'watch' | 'wait' | 'timeout' | 'prune' | 'output'>;

/** Watches deployments and prints changes until the signal fires. Throws UsageError. */
export async function watchFiles(
  context: CommandContext,
  session: CommandSession,
  {
    cluster,
    packageName,
    options,
  }: { cluster: Cluster; packageName: string | undefined; options: WatchValues },
): Promise<void> {
  const { interval, file = [], approve } = options;
  if (file.includes('-')) throw new UsageError('--watch: standard input can be read only once');
  /** Last text of each deployment. */
  const reported = new Map<string, string>();
  await watchDeployments(() => renderInput(context, session, { options, packageName, cluster }), cluster, {
    ...readPlanOptions(options),
    approve,
    intervalMs: interval,
    async onEvent(event) {
      const key = keyOf(event);
      const texts =
        event.kind === 'applied' ? ['', describeEvent(event, context)] : [describeEvent(event, context)];
      for (const text of texts) {
        if (reported.get(key) === text) continue;
        reported.set(key, text);
        await writeAll(context.stdout, printable(`${text.trimEnd()}\n`), session.signal);
      }
    },
  });
}

function keyOf(event: WatchEvent): string {
  if (event.kind === 'deleted') return `${event.place.namespace}/${event.place.name}`;
  return `${event.deployment.installNamespace}/${event.deployment.name}`;
}

function describeEvent(event: WatchEvent, { now }: CommandContext): string {
  switch (event.kind) {
    case 'paused':
      return pausedText(event.deployment);
    case 'not-approved':
      return `${formatDiagnostic(event.finding)}: not applied`;
    case 'planned':
      return planText(event.plan);
    case 'applied':
      return `${now().toISOString()} ${reportText(event.deployment.name, event.report)}`;
    case 'deleted':
      return `${now().toISOString()} ${deletedText(event.place.name, event.report)}`;
  }
}
