import type { FlagValues } from '../command/flags.js';
import type { approvalFlags, clusterFlags } from './flags.js';
import { createInterface } from 'node:readline/promises';
import {
  type AppliedDeployment,
  type ApplyDeploymentOptions,
  checkDeployments,
} from '../../api/deployment/apply-deployment.js';
import { type Cluster, openCluster } from '../../api/deployment/cluster.js';
import { getImpacts } from '../../bundle/plain/rights/impact.js';
import { getRights } from '../../bundle/plain/rights/rights.js';
import { CancelledError, OpmateError, UsageError, invalidValue } from '../../core/errors.js';
import type { ApplyReport } from '../../cluster/apply.js';
import type { Applicable, ApplyPlan, ObjectChange } from '../../cluster/plan-apply.js';
import type { InventoryPlace } from '../../cluster/inventory.js';
import { describeId } from '../../cluster/objects.js';
import type { RenderedDeployment } from '../../cluster/documents/render-deployments.js';
import { labelFault, subdomainFault } from '../../kube/names.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { count, printable } from '../printable.js';
import { rightCells, rightHeader } from '../bundle/rights-table.js';
import type { CommandSession } from '../session.js';
import { formatTable } from '../table.js';
import { printFindings, logWarnings } from '../bundle/findings.js';

/** `widget: paused: not applied (sha256:…)`. */
export function pausedText({ name, hash }: RenderedDeployment): string {
  return `${name}: paused: not applied (${hash})`;
}

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
export function readCluster(
  { kubectl, kubeconfig, context }: FlagValues<typeof clusterFlags>,
  session: CommandSession,
): Cluster {
  for (const [flag, value] of [
    ['--kubectl', kubectl],
    ['--kubeconfig', kubeconfig],
    ['--context', context],
  ]) {
    if (value === '' || value?.includes('\0') === true) throw new UsageError(`${flag}: is empty`);
  }
  return openCluster(session, { kubectl, kubeconfig, context });
}

/** Returns how a plan is shown and approved: by hash, by a flag, or on the terminal. */
export function readApproval(
  context: CommandContext,
  { approve, yes = false, forceConflicts, force }: FlagValues<typeof approvalFlags>,
  { signal }: CommandSession,
): ApplyDeploymentOptions {
  return {
    ...{ forceConflicts, force },
    onPlanned: (plan) => writeAll(context.stdout, planText(plan), signal),
    approve: approve ?? (yes ? () => true : ({ deployment }) => confirmPlan(context, deployment)),
  };
}

/** Prints the result for a deployment. Returns the exit code. */
export async function printApplied(
  context: CommandContext,
  name: string,
  applied: AppliedDeployment,
  { signal }: CommandSession,
): Promise<number> {
  switch (applied.state) {
    case 'applied':
      await writeAll(context.stdout, printable(reportText(name, applied.report)), signal);
      return exitCodes.done;
    case 'paused':
      return exitCodes.done;
    case 'declined':
      throw new OpmateError('INVALID', `${name}: not applied: declined`);
    case 'refused':
      await printFindings(context, applied.findings);
      return exitCodes.findings;
  }
}

/** Marks and meanings of changes. */
const shownChanges: Readonly<Record<ObjectChange, readonly [mark: string, meaning: string]>> = {
  add: ['+', 'to add'],
  'take over': ['!', 'to take over from others'],
  change: ['~', 'to change'],
  remove: ['-', 'to remove'],
  keep: ['=', 'to keep, not part of the deployment'],
};

/** Returns a plan as text: version, pins, permissions, changes. */
export function planText({ deployment, place, current, changes, read }: ApplyPlan): string {
  const { name, version, hash, pins, objects, clouds = [] } = deployment;
  const { unfinished } = read.inventory;
  const lines = [
    `${name}${version === undefined ? '' : ` ${version}`} in namespace ${place.namespace}`,
    `render: ${hash}`,
    current === undefined
      ? 'current revision: none'
      : `current revision: ${current.revision}${current.version === undefined ? '' : `, ${current.version}`}, ${current.hash}`,
    ...(unfinished === undefined
      ? []
      : [`an earlier run (started ${unfinished.time}) was interrupted and will be repaired`]),
    ...pins.map((pin) => `source ${pin.name === '' ? '' : `${pin.name}: `}${pin.type} ${pin.ref}`),
  ].map((line) => line.replaceAll('\n', '\\n'));
  const rights = getRights(objects);
  const table =
    rights.length === 0
      ? 'permissions: none\n'
      : `permissions:\n${formatTable(rightHeader, rights.map(rightCells))}`;
  const counts = Object.entries(shownChanges).flatMap(([change, [, meaning]]) => {
    const number = changes.filter((item) => item.change === change).length;
    return number === 0 ? [] : [`${number} ${meaning}`];
  });
  const text = [
    ...lines,
    table.replace(/ +$/gm, '').trimEnd(),
    ...getImpacts(objects, place.namespace).map(
      ({ kind, object, detail }) => `${kind}: ${object}: ${detail}`,
    ),
    ...(clouds.length === 0 ? [] : [`requests cloud credentials: ${clouds.join(', ')}`]),
    `changes: ${counts.length === 0 ? 'none' : counts.join(', ')}, of ${count(objects.length, 'object')}`,
    ...changes.map(({ id, change }) => `  ${shownChanges[change][0]} ${describeId(id)}`),
  ];
  return printable(`${text.join('\n')}\n`);
}

/** Returns the changes of an applied deployment as text. */
export function reportText(name: string, report: ApplyReport): string {
  const { revision, created, changed, removed, kept, unchanged } = report;
  const parts = [
    [created.length, 'created'],
    [changed.length, 'changed'],
    [removed.length, 'removed'],
    [unchanged, 'unchanged'],
  ].flatMap(([number, what]) => (number === 0 ? [] : [`${number} ${what}`]));
  const what = parts.length === 0 ? 'no changes' : parts.join(', ');
  const lines = [
    `${name}: ${revision === undefined ? 'already applied' : `revision ${revision} applied`}: ${what}`,
  ];
  if (revision === undefined) {
    // These objects had drifted from the applied revision.
    lines.push(...[...created, ...changed].map((id) => `  restored: ${describeId(id)}`));
  }
  lines.push(
    ...kept.map((id) => `  kept: ${describeId(id)} (not part of the deployment); use --force to delete it`),
  );
  return `${lines.join('\n')}\n`;
}

/** Asks on the terminal. Throws UsageError without one. */
async function confirmPlan(context: CommandContext, { name, hash }: Applicable): Promise<boolean> {
  const { stdin, stderr, signal } = context;
  if ((stdin as { isTTY?: boolean }).isTTY !== true || stderr.isTTY !== true) {
    throw new UsageError(`${name}: not applied: no terminal to confirm`, {
      hint: `review the changes, then add --approve ${hash}, or --yes`,
    });
  }
  // Without terminal mode Ctrl-C remains a signal for the process.
  const lines = createInterface({ input: stdin, output: stderr, terminal: false });
  try {
    const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
    const question = printable(`apply ${name} to the cluster? [y/N] `);
    const reply = await Promise.race([lines.question(question, { signal }), closed]);
    return /^y(?:es)?$/i.test(reply.trim());
  } catch (error) {
    if (signal.aborted) throw new CancelledError();
    throw error;
  } finally {
    lines.close();
  }
}

/** Reads name and namespace of a deployment. Throws UsageError. */
export function readPlace(name: string, namespace: string): InventoryPlace {
  return {
    name: requireName('the name of the deployment', name, subdomainFault),
    namespace: requireName('--namespace', namespace, labelFault),
  };
}

/** Checks that a text is a valid deployment name. Throws UsageError. */
function requireName(what: string, text: string, fault: (text: string) => string | undefined): string {
  if (text === '') throw new UsageError('missing', { subject: what });
  const wrong = fault(text);
  if (wrong === undefined) return text;
  throw invalidValue(what, text, wrong);
}
