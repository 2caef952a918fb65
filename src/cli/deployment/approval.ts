import type { FlagValues } from '../command/flags.js';
import type { approvalFlags, clusterFlags } from './flags.js';
import { createInterface } from 'node:readline/promises';
import { isClusterKind } from '../../bundle/plain/cluster-scope.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { getRights } from '../../bundle/plain/rights/rights.js';
import { onAbort } from '../../core/concurrency.js';
import { CancelledError, OpmateError, UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import {
  type Applicable,
  type ApplyOptions,
  type ApplyPlan,
  type ApplyReport,
  type ObjectChange,
  applyPlan,
  planApply,
} from '../../deployment/cluster/apply.js';
import { Kubectl } from '../../deployment/cluster/kubectl.js';
import { describeId, toKey } from '../../deployment/cluster/objects.js';
import type { RenderedDeployment } from '../../deployment/rendered-deployment.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { count, printable } from '../printable.js';
import { rightCells, rightHeader } from '../bundle/rights-table.js';
import type { CommandSession } from '../session.js';
import { formatTable } from '../table.js';
import { tellFindings, tellWarnings } from '../bundle/findings.js';

/** `widget: paused: not applied (sha256:…)`. */
export function pausedText({ name, hash }: RenderedDeployment): string {
  return `${name}: paused: not applied (${hash})`;
}

/** Tells what the renders have found; false where something speaks against one of them. */
export async function areSound(
  context: CommandContext,
  session: CommandSession,
  deployments: readonly RenderedDeployment[],
): Promise<boolean> {
  for (const { warnings } of deployments) tellWarnings(session, warnings);
  const findings = deployments.flatMap((deployment) => deployment.findings);
  const places = deployments.map(({ name, installNamespace }) => `${installNamespace}/${name}`);
  const twice = new Set(places.filter((place, index) => places.indexOf(place) !== index));
  for (const place of twice) {
    findings.push({
      severity: 'error',
      code: 'duplicate-deployment',
      subject: place,
      problem: 'two deployments of this name are installed in one namespace',
      hint: 'give one of them another name, for each would undo the other',
    });
  }
  if (findings.length === 0) findings.push(...sharedObjects(deployments));
  await tellFindings(context, findings);
  return findings.length === 0;
}

/** Objects that several deployments have: each belongs to one, or each would undo what the other does. */
function sharedObjects(deployments: readonly RenderedDeployment[]): Diagnostic[] {
  const owners = new Map<string, string>();
  const findings: Diagnostic[] = [];
  for (const { name: owner, installNamespace, objects } of deployments) {
    for (const object of objects) {
      const { apiVersion, kind, name } = object;
      const namespace = object.namespace || (isClusterKind(kind) ? '' : installNamespace);
      const id = { apiVersion, kind, name, namespace };
      const other = owners.get(toKey(id));
      if (name === '') continue;
      if (other === undefined) owners.set(toKey(id), owner);
      else if (other !== owner) {
        findings.push({
          severity: 'error',
          code: 'duplicate-object',
          subject: describeId(id),
          problem: `is in the deployments ${quoteGo(other)} and ${quoteGo(owner)}`,
          hint: 'remove it from one of them',
        });
      }
    }
  }
  return findings;
}

/** kubectl as the options name it. */
export function openKubectl(
  context: CommandContext,
  { kubectl, ...options }: FlagValues<typeof clusterFlags>,
  session: CommandSession,
): Kubectl {
  for (const [flag, value] of [
    ['--kubectl', kubectl],
    ['--kubeconfig', options.kubeconfig],
    ['--context', options.context],
  ]) {
    if (value === '' || value?.includes('\0') === true) throw new UsageError(`${flag}: is empty`);
  }
  return new Kubectl({
    program: kubectl,
    kubeconfig: options.kubeconfig,
    context: options.context,
    environment: context.environment,
    workingDirectory: context.workingDirectory,
    logger: session.logger,
    signal: session.signal,
  });
}

/** What applying takes from the command line. */
export function getApplyOptions(
  context: CommandContext,
  { forceConflicts, force }: FlagValues<typeof approvalFlags>,
  session: CommandSession,
): ApplyOptions {
  return {
    forceConflicts,
    force,
    now: context.now,
    sleep,
    logger: session.logger,
    signal: session.signal,
  };
}

/** Plans, shows, asks and applies one deployment. Returns the exit code. */
export async function applyOne(
  context: CommandContext,
  kubectl: Kubectl,
  deployment: Applicable,
  options: FlagValues<typeof approvalFlags>,
  session: CommandSession,
  rollbackTo?: number,
): Promise<number> {
  const how = {
    ...getApplyOptions(context, options, session),
    ...(rollbackTo !== undefined && { rollbackTo }),
  };
  const plan = await planApply(kubectl, deployment, how);
  if (plan.findings.length > 0) {
    await tellFindings(context, plan.findings);
    return exitCodes.findings;
  }
  await writeAll(context.stdout, planText(plan), session.signal);
  const { hash, name } = deployment;
  if (options.approve !== undefined) {
    const mismatch = approvalFault(deployment, options.approve);
    if (mismatch !== undefined) {
      await tellFindings(context, [mismatch]);
      return exitCodes.findings;
    }
  } else if (options.yes !== true) {
    const reply = await confirm(context, `apply ${name} to the cluster? [y/N] `);
    if (reply === undefined) {
      throw new UsageError(`${name}: not applied: no terminal to confirm`, {
        hint: `review the changes, then add --approve ${hash}, or --yes`,
      });
    }
    if (!reply) throw new OpmateError('INVALID', `${name}: not applied: declined`);
  }
  const report = await applyPlan(kubectl, plan, how);
  await writeAll(context.stdout, printable(reportText(name, report)), session.signal);
  return exitCodes.done;
}

/** Why a render is not what was approved; undefined if it is. */
export function approvalFault(
  { name, hash }: Applicable,
  approved: readonly string[],
): Diagnostic | undefined {
  const bare = (text: string): string => text.replace(/^sha256:/, '');
  if (approved.some((text) => bare(text) === bare(hash))) return undefined;
  return {
    severity: 'error',
    code: 'not-approved',
    subject: name,
    problem: `what would be applied is ${hash}, what was approved is ${approved.join(', ')}`,
    hint: 'review what has changed, then approve its hash',
  };
}

const marks: Readonly<Record<ObjectChange, string>> = {
  add: '+',
  'take over': '!',
  change: '~',
  remove: '-',
  keep: '=',
};
const meanings: Readonly<Record<ObjectChange, string>> = {
  add: 'to add',
  'take over': 'to take over from others',
  change: 'to change',
  remove: 'to remove',
  keep: 'to keep although left over',
};

/** A plan as the user approves it: version, pins, permissions, changes. */
export function planText({ deployment, place, current, changes, read }: ApplyPlan): string {
  const { name, version, hash, pins, objects, clouds = [] } = deployment;
  const { unfinished } = read.inventory;
  const lines = [
    `${name}${version === undefined ? '' : ` ${version}`} in namespace ${place.namespace}`,
    `render: ${hash}`,
    current === undefined
      ? 'on the cluster: nothing yet'
      : `on the cluster: revision ${current.revision}${current.version === undefined ? '' : `, ${current.version}`}, ${current.hash}`,
    ...(unfinished === undefined
      ? []
      : [`a run that began at ${unfinished.time} did not end: it will be mended`]),
    ...pins.map((pin) => `source ${pin.name === '' ? '' : `${pin.name}: `}${pin.type} ${pin.ref}`),
  ].map((line) => line.replaceAll('\n', '\\n'));
  const rights = getRights(objects);
  const table =
    rights.length === 0
      ? 'permissions: none\n'
      : `permissions:\n${formatTable(rightHeader, rights.map(rightCells))}`;
  const counts = (Object.keys(meanings) as ObjectChange[]).flatMap((change) => {
    const number = changes.filter((item) => item.change === change).length;
    return number === 0 ? [] : [`${number} ${meanings[change]}`];
  });
  const text = [
    ...lines,
    table.replace(/ +$/gm, '').trimEnd(),
    ...(clouds.length === 0 ? [] : [`asks for credentials of: ${clouds.join(', ')}`]),
    `changes: ${counts.length === 0 ? 'none' : counts.join(', ')}, of ${count(objects.length, 'object')}`,
    ...changes.map(({ id, change }) => `  ${marks[change]} ${describeId(id)}`),
  ];
  return printable(`${text.join('\n')}\n`);
}

/** What applying did, in a few lines. */
export function reportText(name: string, report: ApplyReport): string {
  const { revision, created, changed, removed, kept, unchanged } = report;
  const parts = [
    [created.length, 'created'],
    [changed.length, 'changed'],
    [removed.length, 'removed'],
    [unchanged, 'as before'],
  ].flatMap(([number, what]) => (number === 0 ? [] : [`${number} ${what}`]));
  const what = parts.length === 0 ? 'nothing to do' : parts.join(', ');
  const lines = [
    `${name}: ${revision === undefined ? 'was applied already' : `revision ${revision} applied`}: ${what}`,
  ];
  if (revision === undefined) {
    // It had changed although nobody had asked for that.
    lines.push(...[...created, ...changed].map((id) => `  put back: ${describeId(id)}`));
  }
  lines.push(
    ...kept.map(
      (id) =>
        `  left over, and kept with what it holds: ${describeId(id)}; --force deletes it, unless it is in use here`,
    ),
  );
  return `${lines.join('\n')}\n`;
}

/** Asks on the terminal; undefined if missing. */
async function confirm(context: CommandContext, question: string): Promise<boolean | undefined> {
  const { stdin, stderr, signal } = context;
  if ((stdin as { isTTY?: boolean }).isTTY !== true || stderr.isTTY !== true) return undefined;
  // Reading lines as the terminal gives them leaves Ctrl-C to the process.
  const lines = createInterface({ input: stdin, output: stderr, terminal: false });
  try {
    const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
    const reply = await Promise.race([lines.question(printable(question), { signal }), closed]);
    return /^y(?:es)?$/i.test(reply.trim());
  } catch (error) {
    if (signal.aborted) throw new CancelledError();
    throw error;
  } finally {
    lines.close();
  }
}

/** Resolves after this time, or as soon as `signal` fires. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    let unwatch = (): void => undefined;
    const end = (): void => {
      clearTimeout(timer);
      unwatch();
      resolve();
    };
    const timer = setTimeout(end, ms);
    unwatch = onAbort(signal, end);
  });
}

/** Throws UsageError unless a text may be the name of a deployment. */
export function requireName(
  what: string,
  text: string | undefined,
  fault: (text: string) => string | undefined,
): string {
  if (text === undefined || text === '') throw new UsageError(`${what} is missing`);
  const wrong = fault(text);
  if (wrong === undefined) return text;
  throw new UsageError(`${what} ${quoteGo(text)}: ${wrong}`);
}
