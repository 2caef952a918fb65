import path from 'node:path';
import { formatDiagnostic, formatMessage } from '../../core/diagnostic.js';
import { diagnosticsFrom, namesLine } from '../../core/diagnostics-error.js';
import { OpmateError, redact } from '../../core/errors.js';
import type { JsonValue } from '../../document/json.js';
import type { CatalogPlace } from '../../source/place.js';
import type { PlaceState } from '../../source/drivers/driver.js';
import type { CatalogManifest } from './catalog-manifest.js';
import { getType, unionTypes } from './manifest-source.js';

/** A condition as objects of a cluster have them. (Source: ClusterCatalog.) */
export interface CatalogCondition {
  type: 'Progressing' | 'Serving';
  status: 'True' | 'False';
  reason: 'Succeeded' | 'Retrying' | 'Blocked' | 'Available' | 'Unavailable' | 'UserSpecifiedUnavailable';
  message: string;
  /** When `status` or `reason` became what it is. */
  lastTransitionTime: string;
}

/** What is written down of a catalog: its content, where that is from, and how it fares. */
export interface CatalogRecord {
  name: string;
  labels: Readonly<Record<string, string>>;
  priority: number;
  isAvailable: boolean;
  /** Empty where the manifest cannot be read. */
  sourceType: string;
  /** Name of the file of the manifest. */
  file?: string | undefined;
  /** Of the manifest whose origin the content is from. */
  originKey?: string | undefined;
  /** The state that the content is of. */
  origin?: PlaceState | undefined;
  contentHash?: string | undefined;
  /** When the content was taken over. */
  lastUnpacked?: string | undefined;
  /** When the origin was looked at with success. */
  lastChecked?: string | undefined;
  conditions: readonly CatalogCondition[];
  /** Everything that keeps the catalog from its latest state; left out where nothing does. */
  problems?: readonly CatalogProblem[] | undefined;
}

/** One thing that is wrong with a catalog or its manifest, without secrets. */
export interface CatalogProblem {
  message: string;
  file?: string | undefined;
  /** From 1, as `column`. */
  line?: number | undefined;
  column?: number | undefined;
  hint?: string | undefined;
}

/** Why a catalog is not in its latest state: as the message of a condition, one problem per line, and one by one. */
export interface CatalogFault {
  message: string;
  problems: readonly CatalogProblem[];
}

/** The same list with one condition changed; its date stays while status and reason do. */
export function withCondition(
  conditions: readonly CatalogCondition[],
  next: Omit<CatalogCondition, 'lastTransitionTime'>,
  now: Date,
): CatalogCondition[] {
  const before = conditions.find(({ type }) => type === next.type);
  const isSame = before?.status === next.status && before.reason === next.reason;
  const lastTransitionTime = isSame ? before.lastTransitionTime : getSeconds(now);
  const rest = conditions.filter(({ type }) => type !== next.type);
  return [...rest, { ...next, lastTransitionTime }].sort((a, b) => (a.type < b.type ? -1 : 1));
}

/** A date in whole seconds, as the API has them. */
export function getSeconds(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}

/** Problems of a catalog that its status has, and characters of a text in it. */
const maxProblems = 100;
const maxText = 2_000;

/** Returns an error as the status of a catalog has it: without secrets, and the same at every try. */
export function describeFault(error: unknown): CatalogFault {
  if (!(error instanceof OpmateError)) {
    const message = 'failed, see the log';
    return { message, problems: [{ message }] };
  }
  const diagnostics = diagnosticsFrom(error);
  const problems = diagnostics.slice(0, maxProblems).map((diagnostic): CatalogProblem => {
    const { file, line, column, hint } = diagnostic;
    const place = file === undefined ? {} : { file: toStatusText(file), line, column };
    const message = toStatusText(formatMessage(diagnostic));
    return { message, ...place, ...(hint !== undefined && { hint: toStatusText(hint) }) };
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

/** Returns both faults as one. */
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

/** Returns a text on one line, without secrets and what differs from try to try. */
function toStatusText(text: string): string {
  // Sockets of one's own side have another port each time.
  const stable = redact(text)
    .replace(/\b(?:\d{1,3}\.){3}\d{1,3}:\d+->/g, '')
    .replace(/\s*\n\s*/g, ' ');
  return stable.length > maxText ? `${stable.slice(0, maxText)}…` : stable;
}

/**
 * A catalog in the shape of the API: a ClusterCatalog with its status. `contentURL`, `contentHash` and `problems` are ours.
 * `externalUrl` is what URLs begin with.
 */
export function catalogStatus(record: CatalogRecord, externalUrl: string): JsonValue {
  const { name, labels, priority, isAvailable, sourceType, origin, contentHash, conditions } = record;
  const { problems = [] } = record;
  const base = `${externalUrl}/catalogs/${name}`;
  const resolved = origin === undefined ? undefined : resolvedSource(sourceType, origin.ref);
  return {
    apiVersion: 'olm.operatorframework.io/v1',
    kind: 'ClusterCatalog',
    metadata: { name, labels: { ...labels } },
    spec: { availabilityMode: isAvailable ? 'Available' : 'Unavailable', priority },
    status: {
      conditions: conditions.map((condition) => ({ ...condition })),
      ...(problems.length > 0 && { problems: problems.map(toJson) }),
      ...(resolved !== undefined && { resolvedSource: resolved }),
      ...(contentHash !== undefined && {
        urls: { base },
        contentURL: `${base}/api/v1/all`,
        contentHash,
      }),
      ...(record.lastUnpacked !== undefined && { lastUnpacked: record.lastUnpacked }),
      ...(record.lastChecked !== undefined && { lastChecked: record.lastChecked }),
    },
  };
}

function toJson({ message, file, line, column, hint }: CatalogProblem): JsonValue {
  return {
    message,
    ...(file !== undefined && { file }),
    ...(line !== undefined && { line }),
    ...(column !== undefined && { column }),
    ...(hint !== undefined && { hint }),
  };
}

function resolvedSource(type: string, ref: string): JsonValue {
  return { type, [(unionTypes as Readonly<Record<string, string>>)[type] ?? 'image']: { ref } };
}

/** What a manifest says of a record. */
export function recordOfManifest(
  manifest: Pick<CatalogManifest, 'name' | 'labels' | 'priority' | 'isAvailable' | 'file'> & {
    origin: CatalogPlace | undefined;
  },
): Omit<CatalogRecord, 'conditions'> {
  const { name, labels, priority, isAvailable, file, origin } = manifest;
  return {
    name,
    labels,
    priority,
    isAvailable,
    file: path.basename(file),
    sourceType: origin === undefined ? '' : getType(origin.kind),
  };
}
