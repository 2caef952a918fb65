import path from 'node:path';
import { createFault, encodeDiagnostic, formatDiagnostic } from '../../core/diagnostic.js';
import { diagnosticsFrom, namesLine } from '../../core/diagnostics-error.js';
import { OpmateError, redactUrls } from '../../core/errors.js';
import type { JsonObject, JsonValue } from '../../document/json.js';
import type { CatalogPlace } from '../../source/place.js';
import type { PlaceState } from '../../source/drivers/driver.js';
import type { CatalogManifest } from './catalog-manifest.js';
import { encodeUnionSource, getSourceType, unionTypes } from './manifest-source.js';

export const conditionReasons = [
  'Succeeded',
  'Retrying',
  'Blocked',
  'Available',
  'Unavailable',
  'UserSpecifiedUnavailable',
] as const;

/** A status condition. (Source: ClusterCatalog.) */
interface CatalogCondition {
  type: 'Progressing' | 'Serving';
  status: 'True' | 'False';
  reason: (typeof conditionReasons)[number];
  message: string;
  /** Time of the last change of `status` or `reason`. */
  lastTransitionTime: string;
}

/** Persistent record of a catalog: content, origin and status. */
export interface CatalogRecord extends Pick<CatalogManifest, 'name' | 'labels' | 'priority' | 'isAvailable'> {
  /** Empty where the manifest cannot be read. */
  sourceType: string;
  /** Source as a manifest of a ClusterCatalog has it. */
  source?: JsonObject | undefined;
  /** Name of the file of the manifest. */
  file?: string | undefined;
  /** `originKey` of the manifest that the content is from. */
  originKey?: string | undefined;
  /** State of the origin that the content has. */
  origin?: PlaceState | undefined;
  contentHash?: string | undefined;
  /** Time at which the content was first served. */
  lastUnpacked?: string | undefined;
  /** Time of the last successful look at the origin. */
  lastChecked?: string | undefined;
  conditions: readonly CatalogCondition[];
  /** Problems that keep the catalog from its latest state. */
  problems?: readonly JsonObject[] | undefined;
}

/** Problems of a catalog; `message` has one per line, for a condition. */
interface CatalogFault {
  message: string;
  problems: readonly JsonObject[];
}

/** A manifest, or the placeholder of a refused one. */
export interface KeptManifest extends Omit<CatalogManifest, 'origin' | 'kind' | 'line'> {
  origin: CatalogPlace | undefined;
  /** Fault of the present manifest, which is refused; the other fields are from before. */
  fault?: CatalogFault | undefined;
}

/** A condition without its date. */
export type UndatedCondition = Omit<CatalogCondition, 'lastTransitionTime'>;

/** Condition of a served catalog. */
export const served: UndatedCondition = {
  type: 'Serving',
  status: 'True',
  reason: 'Available',
  message: 'the catalog is served',
};

/** Returns the condition of a catalog that is not served. */
export function notServed(
  message: string,
  reason: 'Unavailable' | 'UserSpecifiedUnavailable' = 'Unavailable',
): UndatedCondition {
  return { type: 'Serving', status: 'False', reason, message };
}

/** Returns the condition of a catalog that is up to date or being retried. */
export function progress(reason: 'Succeeded' | 'Retrying', message: string): UndatedCondition {
  return { type: 'Progressing', status: 'True', reason, message };
}

/** Returns the condition of a catalog that needs another manifest or content. */
export function blocked(message: string): UndatedCondition {
  return { type: 'Progressing', status: 'False', reason: 'Blocked', message };
}

/** Returns the conditions with one changed; its date stays while status and reason do. */
export function withCondition(
  conditions: readonly CatalogCondition[],
  next: UndatedCondition,
  now: Date,
): CatalogCondition[] {
  const before = conditions.find(({ type }) => type === next.type);
  const isSame = before?.status === next.status && before.reason === next.reason;
  const lastTransitionTime = isSame ? before.lastTransitionTime : formatSeconds(now);
  const rest = conditions.filter(({ type }) => type !== next.type);
  return [...rest, { ...next, lastTransitionTime }].sort((a, b) => (a.type < b.type ? -1 : 1));
}

/** Formats a date in whole seconds, as the API does. */
export function formatSeconds(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}

/** Maximum problems in a status, and maximum length of their texts. */
const maxProblems = 100;
const maxText = 2_000;

/** Converts an error to a fault without secrets that is equal for each retry. */
export function toCatalogFault(error: unknown): CatalogFault {
  if (!(error instanceof OpmateError)) {
    const message = 'failed, see the log';
    return { message, problems: [encodeDiagnostic(createFault('internal', message))] };
  }
  const diagnostics = diagnosticsFrom(error);
  const problems = diagnostics.slice(0, maxProblems).map((diagnostic): JsonObject => {
    const fields = Object.entries(encodeDiagnostic(diagnostic));
    return Object.fromEntries(
      fields.map(([key, value]) => [key, typeof value === 'string' ? toStatusText(value) : value]),
    );
  });
  const { message, file, line, hint } = error;
  if (diagnostics.length > 1) {
    const lines = diagnostics
      .slice(0, maxProblems)
      .map((diagnostic) => withHint(formatDiagnostic(diagnostic), diagnostic.hint));
    const more = diagnostics.length - problems.length;
    return { message: [...lines, ...(more > 0 ? [`… and ${more} more`] : [])].join('\n'), problems };
  }
  const place = line === undefined || namesLine(error) ? '' : ` (${file}:${line})`;
  return { message: withHint(`${message}${place}`, hint), problems };
}

/** Combines two faults. */
export function joinFaults(first: CatalogFault | undefined, second: CatalogFault): CatalogFault {
  if (first === undefined) return second;
  return {
    message: `${first.message}\n${second.message}`,
    problems: [...first.problems, ...second.problems].slice(0, maxProblems),
  };
}

function withHint(text: string, hint: string | undefined): string {
  return toStatusText(hint === undefined ? text : `${text}; ${hint}`);
}

/** Converts a text to one line, without secrets and parts that differ between retries. */
function toStatusText(text: string): string {
  // The local port differs each time.
  const stable = redactUrls(text)
    .replace(/\b(?:\d{1,3}\.){3}\d{1,3}:\d+->/g, '')
    .replace(/\s*\n\s*/g, ' ');
  return stable.length > maxText ? `${stable.slice(0, maxText)}…` : stable;
}

/**
 * Returns a ClusterCatalog with its status; `contentURL`, `contentHash` and `problems` are extensions of opmate.
 * `base` is the URL of the catalog.
 */
export function createCatalogStatus(
  record: Omit<CatalogRecord, 'conditions'> & { conditions: readonly UndatedCondition[] },
  base: string,
): JsonObject {
  const { name, labels, priority, isAvailable, sourceType, source, origin, contentHash } = record;
  const { problems = [] } = record;
  const kinds: Readonly<Record<string, string>> = unionTypes;
  const urls = contentHash === undefined ? {} : { urls: { base }, contentURL: `${base}/api/v1/all` };
  return {
    apiVersion: 'olm.operatorframework.io/v1',
    kind: 'ClusterCatalog',
    metadata: { name, labels: { ...labels } },
    spec: {
      ...(source !== undefined && { source }),
      availabilityMode: isAvailable ? 'Available' : 'Unavailable',
      priority,
    },
    status: withoutUndefined({
      conditions: record.conditions.map((condition) => ({ ...condition })),
      problems: problems.length === 0 ? undefined : [...problems],
      resolvedSource: origin && { type: sourceType, [kinds[sourceType] ?? 'image']: { ref: origin.ref } },
      ...urls,
      contentHash,
      lastUnpacked: record.lastUnpacked,
      lastChecked: record.lastChecked,
    }),
  };
}

function withoutUndefined(fields: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as JsonObject;
}

/** Converts a manifest to its fields of a record. */
export function toManifestRecord(manifest: KeptManifest): Omit<CatalogRecord, 'conditions'> {
  const { name, labels, priority, isAvailable, file, origin, pollMs } = manifest;
  const base = { name, labels, priority, isAvailable, file: path.basename(file) };
  if (origin === undefined) return { ...base, sourceType: '' };
  return { ...base, sourceType: getSourceType(origin.kind), source: encodeUnionSource(origin, pollMs) };
}
