import { parseGoJson } from '../../document/go-json.js';
import { getText, getValue } from '../../document/json-fields.js';
import type { JsonValue } from '../../document/json.js';
import { type BundleBlob, propertyTypes } from '../../model/declarative-config.js';
import { findCsvText } from '../../model/migrations.js';
import { getPropertyValue } from '../../model/properties.js';

/**
 * Returns the creation date of a bundle, such as `2024-01-31`: the annotation `createdAt` of its
 * ClusterServiceVersion, from its CSV metadata or objects, without time and zone. Undefined unless it starts with a
 * date.
 */
export function findCreationDay(blob: BundleBlob): string | undefined {
  const metadata = blob.properties.find(({ type }) => type === propertyTypes.csvMetadata);
  return parseDay(
    getText(metadata ? getPropertyValue(metadata.value) : readCsvMetadata(blob), 'annotations', 'createdAt'),
  );
}

function readCsvMetadata(blob: BundleBlob): JsonValue | undefined {
  const text = findCsvText(blob);
  return text === undefined ? undefined : getValue(parseGoJson(text), 'metadata');
}

/** Parses a date `YYYY-MM-DD` at the start of text; undefined for an invalid date. */
export function parseDay(text: string): string | undefined {
  const match = /^\s*(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?!\d)/.exec(text);
  if (match === null) return undefined;
  const [year, month, day] = match.slice(1).map(Number) as [number, number, number];
  const date = new Date(Date.UTC(year, month - 1, day));
  const isThere =
    date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return isThere ? date.toISOString().slice(0, 10) : undefined;
}

/** Returns the date a number of months before another; the last day of a shorter month. */
export function monthsBefore(date: Date, months: number): string {
  const first = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - months, 1));
  const length = new Date(Date.UTC(first.getUTCFullYear(), first.getUTCMonth() + 1, 0)).getUTCDate();
  first.setUTCDate(Math.min(date.getUTCDate(), length));
  return first.toISOString().slice(0, 10);
}
