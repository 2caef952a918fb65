import { parseGoJson } from '../../document/go-json.js';
import { getText, getValue } from '../../document/json-fields.js';
import type { JsonValue } from '../../document/json.js';
import { type BundleBlob, propertyTypes } from '../../model/declarative-config.js';
import { findCsvText } from '../../model/migrations.js';
import { unwrap } from '../../model/properties.js';

/**
 * The day on which a bundle says it was created, e.g. `2024-01-31`: the annotation `createdAt` of its
 * ClusterServiceVersion, from its CSV metadata or its objects. The time of day and its zone do not count. Undefined
 * where it says nothing that begins with a year, a month and a day.
 */
export function findCreationDay(blob: BundleBlob): string | undefined {
  const metadata = blob.properties.find(({ type }) => type === propertyTypes.csvMetadata);
  return parseDay(
    getText(metadata ? unwrap(metadata.value) : readCsvMetadata(blob), 'annotations', 'createdAt'),
  );
}

function readCsvMetadata(blob: BundleBlob): JsonValue | undefined {
  const text = findCsvText(blob);
  return text === undefined ? undefined : getValue(parseGoJson(text), 'metadata');
}

/** A day as `YYYY-MM-DD`; undefined for text that begins with no date that there is. */
export function parseDay(text: string): string | undefined {
  const match = /^\s*(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)/.exec(text);
  if (match === null) return undefined;
  const [year, month, day] = match.slice(1).map(Number) as [number, number, number];
  const date = new Date(Date.UTC(year, month - 1, day));
  const isThere =
    date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return isThere ? date.toISOString().slice(0, 10) : undefined;
}

/** The day so many months before another; the last of the month where that is shorter. */
export function monthsBefore(date: Date, months: number): string {
  const first = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - months, 1));
  const length = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate();
  first.setUTCDate(Math.min(date.getUTCDate(), length));
  return first.toISOString().slice(0, 10);
}
