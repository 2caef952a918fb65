import { namesLine } from '../../core/diagnostics-error.js';
import path from 'node:path';
import { OpmateError, redact } from '../../core/errors.js';
import type { JsonValue } from '../../document/json.js';
import type { CatalogPlace } from '../../source/place.js';
import type { PlaceState } from '../../source/drivers/driver.js';
import { type CatalogManifest, getType, unionTypes } from './catalog-manifests.js';

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

/** What an error says in a condition: without secrets, and the same at every try. */
export function conditionMessage(error: unknown): string {
  if (!(error instanceof OpmateError)) return 'failed, see the log';
  const { message, file, line, hint } = error;
  const place = line === undefined || namesLine(error) ? '' : ` (${file}:${line})`;
  const text = redact(`${message}${place}${hint === undefined ? '' : `; ${hint}`}`);
  // Sockets of one's own side have another port each time.
  const stable = text.replace(/\b(?:\d{1,3}\.){3}\d{1,3}:\d+->/g, '');
  return stable.length > 2_000 ? `${stable.slice(0, 2_000)}…` : stable;
}

/**
 * A catalog in the shape of the API: a ClusterCatalog with its status. `contentURL` and `contentHash` are ours.
 * `externalUrl` is what URLs begin with.
 */
export function catalogStatus(record: CatalogRecord, externalUrl: string): JsonValue {
  const { name, labels, priority, isAvailable, sourceType, origin, contentHash, conditions } = record;
  const base = `${externalUrl}/catalogs/${name}`;
  const resolved = origin === undefined ? undefined : resolvedSource(sourceType, origin.ref);
  return {
    apiVersion: 'olm.operatorframework.io/v1',
    kind: 'ClusterCatalog',
    metadata: { name, labels: { ...labels } },
    spec: { availabilityMode: isAvailable ? 'Available' : 'Unavailable', priority },
    status: {
      conditions: conditions.map((condition) => ({ ...condition })),
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
