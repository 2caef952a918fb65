import type { Adoption } from '../../cluster/apply/adopt.js';
import type { ApplyReport } from '../../cluster/apply/apply.js';
import type { RenderedDeployment } from '../../cluster/documents/render-deployments.js';
import type { ChangedField } from '../../cluster/live.js';
import { describeId, describeUnready } from '../../cluster/objects.js';
import type { DeletionPlan } from '../../cluster/delete/plan-delete.js';
import type { ApplyPlan, ObjectChange, PlannedChange } from '../../cluster/apply/plan-types.js';
import type { UnreadyObject } from '../../cluster/readiness.js';
import type { DeletionReport } from '../../cluster/delete/delete.js';
import { getPlanAccess } from '../../api/deployment/apply-deployment.js';
import { encodeGoJson } from '../../document/go-json.js';
import type { JsonValue } from '../../document/json.js';
import { rightCells, rightHeader } from '../bundle/rights-table.js';
import { count, printable } from '../printable.js';
import { formatTable } from '../table.js';

/** `widget: paused: not applied (sha256:…)`. */
export function pausedText({ name, hash }: RenderedDeployment): string {
  return `${name}: paused: not applied (${hash})`;
}

/** Marks and meanings of changes. */
const shownChanges: Readonly<Record<ObjectChange, readonly [mark: string, meaning: string]>> = {
  add: ['+', 'to add'],
  'take over': ['!', 'to take over from others'],
  adopt: ['>', 'to adopt'],
  change: ['~', 'to change'],
  heal: ['~', 'to restore'],
  leave: ['?', 'changed by others, left as they are'],
  remove: ['-', 'to remove'],
  release: ['<', 'to release, not deleted'],
  keep: ['=', 'to keep, not part of the deployment'],
};

/** Returns a plan as text: version, pins, permissions, impacts, changes. */
export function planText(plan: ApplyPlan, adoption?: Adoption): string {
  const { deployment, place, current, read } = plan;
  const { name, version, hash, pins, clouds = [], choice = [] } = deployment;
  const { unfinished } = read.inventory;
  const lines = [
    `${name}${version === undefined ? '' : ` ${version}`} in namespace ${place.namespace}`,
    ...choice.map((line) => `bundle: ${line}`),
    `render: ${hash}`,
    `approval: ${plan.approval}`,
    current === undefined
      ? 'current revision: none'
      : `current revision: ${current.revision}${current.version === undefined ? '' : `, ${current.version}`}, ${current.hash}`,
    ...(unfinished === undefined
      ? []
      : [`an earlier run (started ${unfinished.time}) was interrupted and will be repaired`]),
    ...pins.map((pin) => `source ${pin.name === '' ? '' : `${pin.name}: `}${pin.type} ${pin.ref}`),
  ].map((line) => line.replaceAll('\n', '\\n'));
  const text = [
    ...lines,
    ...permissionLines(plan),
    ...(clouds.length === 0 ? [] : [`requests cloud credentials: ${clouds.join(', ')}`]),
    ...changeLines(plan),
    ...(adoption === undefined ? [] : adoptionLines(adoption)),
  ];
  return printable(`${text.join('\n')}\n`);
}

function permissionLines(plan: ApplyPlan): string[] {
  const { rights, impacts } = getPlanAccess(plan);
  const table =
    rights.length === 0
      ? 'permissions: none'
      : `permissions:\n${formatTable(rightHeader, rights.map(rightCells))}`.replace(/ +$/gm, '').trimEnd();
  return [table, ...impacts.map(({ kind, object, detail }) => `${kind}: ${object}: ${detail}`)];
}

function changeLines({ changes, omitted, objects }: ApplyPlan): string[] {
  const counts = Object.entries(shownChanges).flatMap(([change, [, meaning]]) => {
    const number = changes.filter((item) => item.change === change).length;
    return number === 0 ? [] : [`${number} ${meaning}`];
  });
  return [
    `changes: ${counts.length === 0 ? 'none' : counts.join(', ')}, of ${count(objects.length, 'object')}`,
    ...changes.flatMap(describeChange),
    ...omitted.map((id) => `  omitted, kind not found in the cluster: ${describeId(id)}`),
  ];
}

function describeChange({ id, change, fields, owner }: PlannedChange): string[] {
  const from =
    owner === undefined
      ? ''
      : ` (${owner.kind === 'unknown' ? 'managed by' : owner.kind} ${owner.name || 'unknown'})`;
  return [`  ${shownChanges[change][0]} ${describeId(id)}${from}`, ...fieldLines(fields)];
}

/** Maximum number of fields shown per object. */
const maxFields = 20;

/** Returns fields as lines with old and new values, and the managers that have changed them. */
export function fieldLines(fields: readonly ChangedField[]): string[] {
  const shown = fields.slice(0, maxFields).map((field) => {
    const names = [
      ...new Set(field.managers.map(({ name, time }) => (time === '' ? name : `${name} at ${time}`))),
    ];
    const by = names.length === 0 ? '' : ` (managed by ${names.join(', ')})`;
    return `      ${field.path}: ${showValue(field.old)} -> ${showValue(field.new)}${by}`;
  });
  return fields.length > maxFields ? [...shown, `      and ${fields.length - maxFields} more fields`] : shown;
}

const maxValue = 80;

function showValue(value: JsonValue | undefined): string {
  if (value === undefined) return '(none)';
  const text = encodeGoJson(value);
  return text.length > maxValue ? `${text.slice(0, maxValue)}…` : text;
}

function adoptionLines({ records, orphans, deployments }: Adoption): string[] {
  return [
    ...records.map((id) => `  - ${describeId(id)} (record of the present owner, without its dependents)`),
    ...orphans.map(
      (id) => `  ? ${describeId(id)} (not part of the deployment, stays with its present owner or nobody)`,
    ),
    ...deployments.map(
      ({ namespace, name }) => `  < deployment ${namespace}/${name} loses the adopted objects`,
    ),
  ];
}

/** Returns the changes of an applied deployment as text. */
export function reportText(name: string, report: ApplyReport): string {
  const { revision, created, changed, removed, released, kept, left, unchanged } = report;
  const parts = [
    [created.length, 'created'],
    [changed.length, 'changed'],
    [removed.length, 'removed'],
    [released.length, 'released'],
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
    ...left.map((id) => `  left as it is: ${describeId(id)}, changed by others; use --heal to restore it`),
    ...kept.map((id) => `  kept: ${describeId(id)} (not part of the deployment); use --force to delete it`),
  );
  return printable(`${lines.join('\n')}\n`);
}

/** Returns objects that are not ready as lines. */
export function unreadyText(name: string, unready: readonly UnreadyObject[]): string {
  const lines = unready.map((object) => `  ${describeUnready(object)}`);
  return printable(`${name}: not ready: ${count(unready.length, 'object')}\n${lines.join('\n')}\n`);
}

/** Returns the plan of a deletion as text. */
export function deletionText({ place, steps, instances, approval }: DeletionPlan): string {
  const lines = [
    `delete ${place.name} in namespace ${place.namespace}`,
    `approval: ${approval}`,
    ...instances.map((id) => `  - ${describeId(id)}`),
    ...steps.map((step) => `  ${describeStep(step)}`),
  ];
  return printable(`${lines.join('\n')}\n`);
}

/** Returns the result of a deletion as text. */
export function deletedText(name: string, { removed, released, kept }: DeletionReport): string {
  const parts = [
    `${removed.length} removed`,
    ...(released.length > 0 ? [`${released.length} released`] : []),
    ...(kept.length > 0 ? [`${kept.length} kept`] : []),
  ];
  const lines = [
    `${name}: deleted: ${parts.join(', ')}`,
    ...kept.map(
      (step) =>
        `  kept: ${describeStep(step).slice(2)}${step.instances === undefined ? '' : '; use --crds to delete it'}`,
    ),
  ];
  return printable(`${lines.join('\n')}\n`);
}

/** Returns a step as text: `= CustomResourceDefinition "x" (3 custom resources)`. */
function describeStep({ id, change, reason, instances }: DeletionPlan['steps'][number]): string {
  const why = [
    ...(reason === undefined ? [] : [reason]),
    ...(instances === undefined ? [] : [count(instances, 'custom resource')]),
  ].join(', ');
  const marks = { remove: '-', release: '<', keep: '=', skip: ' ' };
  return `${marks[change]} ${describeId(id)}${why === '' ? '' : ` (${why})`}`;
}
