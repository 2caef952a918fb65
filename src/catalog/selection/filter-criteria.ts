import { OpmateError } from '../../core/errors.js';
import { parseVersionRange } from '../../core/semver-range.js';
import { parseVersion, tryParse, versionHint } from '../../core/semver.js';
import type { Criteria } from './catalog-filter.js';
import { parseDay, monthsBefore } from './creation-days.js';

/** Parsers for criteria in flags and files. Each throws OpmateError INVALID. */

/** Parses `PACKAGE/NAME`, or a name for all packages. */
export function parseQualifiedName(text: string): { package: string | undefined; name: string } {
  const position = text.indexOf('/');
  if (position < 0) return { package: undefined, name: text };
  return { package: text.slice(0, position), name: text.slice(position + 1) };
}

/** Parses a range as OLM reads it; `prefer` as in `parseVersionRange`. */
export function parseNamedRange(
  text: string,
  prefer: 'catalog' | 'olm-v1' = 'catalog',
): NonNullable<Criteria['versions']> {
  const range = tryParse(() => parseVersionRange(text, prefer), text);
  if (range !== undefined) return { text, range };
  throw new OpmateError('INVALID', 'invalid version range', {
    hint: 'use a range such as 1.2.3, 1.2.x, ~1.2, ^1 or ">=1.2.0 <2.0.0"',
  });
}

/** Returns a version as written. */
export function checkVersion(text: string): string {
  if (tryParse(parseVersion, text) !== undefined) return text;
  throw new OpmateError('INVALID', 'invalid version', { hint: versionHint });
}

/** Parses the name or version of an installed bundle. */
export function parseInstalled(text: string): string {
  if (text !== '') return text;
  throw new OpmateError('INVALID', 'expected the name or version of an installed bundle');
}

/** Maximum of `latest`. */
export const maxCount = 1_000_000;

/** Parses a value of `latest`. */
export function parseCount(text: string): number {
  const count = /^\d{1,16}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= maxCount) return count;
  throw new OpmateError('INVALID', `expected an integer from 1 to ${maxCount}`);
}

const maxMonths = 1200;

/** Parses a date, or a number of months before `today`. */
export function parseSince(text: string, today: Date): string {
  const months = /^(\d{1,4}) ?(?:m|months?)?$/.exec(text.trim());
  if (months !== null && Number(months[1]) <= maxMonths) return monthsBefore(today, Number(months[1]));
  const day = /^[\d-]+$/.test(text) ? parseDay(text) : undefined;
  if (day !== undefined) return day;
  throw new OpmateError('INVALID', 'expected a date (YYYY-MM-DD) or a number of months');
}
