import { type DiagnosticList, openValue } from '../document/document.js';
import type { Field } from '../document/field.js';
import { type JsonObject, isJsonObject } from '../document/json.js';

/** Schema of OpenShift's blobs with support phases and platforms of minor versions of operators. */
export const lifecycleSchema = 'io.openshift.operators.lifecycles.v1alpha1';

/** Lifecycle of a package. */
export interface Lifecycle {
  package: string;
  versions: LifecycleVersion[];
}

/** Lifecycle of a minor version, `2.16`. */
export interface LifecycleVersion {
  name: string;
  /** In the order of the blob; dates are `YYYY-MM-DD`, and the last day is part of the phase. */
  phases: { name: string; startDate?: string; endDate?: string }[];
  /** Minor versions of supported platforms. */
  platforms: { name: string; versions: string[] }[];
}

const maxItems = 1_000;

/**
 * Reads a blob of `lifecycleSchema`, reports faults and omits what cannot be read. Allows unknown fields, as the schema
 * is an alpha version. (Source: types of fbc-update-planner, which writes these blobs.)
 */
export function readLifecycle(value: JsonObject, diagnostics: DiagnosticList): Lifecycle {
  const root = openValue(value, { name: lifecycleSchema, kind: 'reference', diagnostics });
  const lifecycle: Lifecycle = { package: root.field('package').text() ?? '', versions: [] };
  const seen = new Set<string>();
  for (const item of readObjects(root.field('versions'))) {
    const name = minorVersion(item.field('name'));
    const phaseFields = readObjects(item.field('phases'));
    const phases = phaseFields.flatMap(readPhase);
    checkSequence(phaseFields);
    const platforms = item.field('platformCompatibility').isPresent
      ? readObjects(item.field('platformCompatibility')).flatMap(readPlatform)
      : [];
    if (name === undefined) continue;
    if (seen.has(name)) item.field('name').fail('duplicate', { code: 'duplicate' });
    seen.add(name);
    lifecycle.versions.push({ name, phases, platforms });
  }
  return lifecycle;
}

/** Returns the objects of a list, and reports other items. */
function readObjects(list: Field): Field[] {
  return (list.list(maxItems) ?? []).filter((item) => {
    if (isJsonObject(item.value)) return true;
    item.mismatch('an object');
    return false;
  });
}

function readPhase(item: Field): LifecycleVersion['phases'] {
  const name = item.field('name').text();
  const startDate = item.field('startDate').optionalMatching(isDate, 'a date as in 2026-01-31');
  const endDate = item.field('endDate').optionalMatching(isDate, 'a date as in 2026-01-31');
  if (startDate !== undefined && endDate !== undefined && endDate <= startDate) {
    const place = endDate < startDate ? 'before' : 'equal to';
    item.field('endDate').fail(`${endDate} is ${place} the start date ${startDate}`);
  }
  if (name === undefined) return [];
  return [{ name, ...(startDate !== undefined && { startDate }), ...(endDate !== undefined && { endDate }) }];
}

/** Checks that each phase starts on the day after the one before it ends. (Source: fbc-update-planner.) */
function checkSequence(phases: readonly Field[]): void {
  const dated = phases.flatMap((phase) => {
    const [start, end] = [phase.field('startDate').value, phase.field('endDate').value];
    const isDated = typeof start === 'string' && isDate(start);
    return isDated ? [{ phase, start, end: typeof end === 'string' && isDate(end) ? end : undefined }] : [];
  });
  const inOrder = [...dated].sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0));
  for (const [index, { phase, start }] of inOrder.entries()) {
    const end = inOrder[index - 1]?.end;
    if (end === undefined || start === dayAfter(end)) continue;
    const problem = start <= end ? 'overlaps the phase before it' : 'leaves a gap after the phase before it';
    phase.field('startDate').fail(`${start} ${problem}, which ends on ${end}`);
  }
}

function dayAfter(date: string): string {
  const day = new Date(`${date}T00:00:00Z`);
  day.setUTCDate(day.getUTCDate() + 1);
  return day.toISOString().slice(0, 10);
}

function readPlatform(item: Field): LifecycleVersion['platforms'] {
  const name = item.field('name').text();
  const versions = (item.field('versions').list(maxItems) ?? []).flatMap(
    (field) => minorVersion(field) ?? [],
  );
  return name === undefined ? [] : [{ name, versions }];
}

function minorVersion(field: Field): string | undefined {
  return field.matching((text) => /^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})$/.test(text), 'a version as in 4.18');
}

function isDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false;
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}
