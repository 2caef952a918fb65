/**
 * Version constraints as users write them for OLM v1, by the rules of the Go library Masterminds/semver v3.5, whose
 * error texts they keep: `,` and space for and, `||` for or, `= != > < >= <= ~ ^`, `x` and `*`, versions of which parts
 * are left out, and `1.2 - 3`. Ranges in catalogs (`skipRange`) are of another kind, see `parseRange` in `semver.ts`.
 */
import { Buffer } from 'node:buffer';
import { quoteGo } from './go-json-quote.js';
import {
  SemverError,
  type Version,
  type VersionNumber,
  type VersionRange,
  compareVersions,
  parseRange,
  tryParse,
} from './semver.js';

/** Limits of that library: bytes of a constraint, bytes of a version in it, groups. */
const maxLength = 512;
const maxVersionLength = 256;
const maxGroups = 32;

/** A version in a constraint. The `|` among its characters only selects another error text. */
const versionPattern =
  'v?([0-9|xX*]+)(\\.[0-9|xX*]+)?(\\.[0-9|xX*]+)?' +
  '(-([0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*))?' +
  '(\\+([0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*))?';
const hyphenPattern = `[\\t\\n\\f\\r ]*(${versionPattern})[\\t\\n\\f\\r ]+-[\\t\\n\\f\\r ]+(${versionPattern})[\\t\\n\\f\\r ]*`;
const termPattern = new RegExp(
  `(!=|>=|=>|<=|=<|~>|[=><~^]|)[\\t\\n\\f\\r ]*(${versionPattern})(?=[\\t\\n\\f\\r ,]|$)`,
  'y',
);
const separatorPattern = /[\t\n\f\r ]*,[\t\n\f\r ]*|[\t\n\f\r ]+/y;

type Operator = '=' | '!=' | '>' | '<' | '>=' | '<=' | '~' | '^';

const operators: Readonly<Record<string, Operator>> = {
  '': '=',
  '=': '=',
  '!=': '!=',
  '>': '>',
  '<': '<',
  '>=': '>=',
  '=>': '>=',
  '<=': '<=',
  '=<': '<=',
  '~': '~',
  '~>': '~',
  '^': '^',
};

/** One comparison. */
interface Term {
  operator: Operator;
  /** Version with zeros for omitted parts. */
  version: Version;
  /** First open part of the version. */
  open: 'major' | 'minor' | 'patch' | undefined;
}

/**
 * Parses a range of catalogs or OLM v1. `prefer` selects the syntax for ranges valid in both, and the SemverError to
 * throw for ranges valid in neither.
 */
export function parseVersionRange(text: string, prefer: 'catalog' | 'olm-v1'): VersionRange {
  const [first, second] =
    prefer === 'catalog' ? [parseRange, parseConstraint] : [parseConstraint, parseRange];
  try {
    return first(text);
  } catch (error) {
    const range = tryParse(second, text);
    if (range === undefined) throw error;
    return range;
  }
}

/**
 * Parses a constraint. A prerelease version satisfies a group of comparisons only if one of them has a prerelease
 * too. Throws SemverError.
 */
export function parseConstraint(text: string): VersionRange {
  if (Buffer.byteLength(text) > maxLength) {
    throw new SemverError(`constraint string is too long (max ${maxLength} bytes)`);
  }
  const parts = rewriteHyphens(text).split('||');
  if (parts.length > maxGroups) {
    throw new SemverError(`too many constraint groups (max ${maxGroups})`);
  }
  const groups = parts.map(parseGroup);
  return {
    contains: (version) =>
      groups.some(({ terms, hasPrerelease }) => {
        if (version.pre.length > 0 && !hasPrerelease) return false;
        return terms.every((term) => tests[term.operator](version, term));
      }),
  };
}

/** Replaces each `A - B` by two comparisons. */
function rewriteHyphens(text: string): string {
  let rewritten = text;
  for (const match of text.matchAll(new RegExp(hyphenPattern, 'g'))) {
    rewritten = rewritten.replace(match[0], () => `>= ${match[1]}, <= ${match[11]} `);
  }
  return rewritten;
}

function parseGroup(text: string): { terms: Term[]; hasPrerelease: boolean } {
  const fault = (): SemverError => new SemverError(`improper constraint: ${quoteGo(text)}`);
  const end = text.replace(/[\t\n\f\r ]+$/, '').length;
  const matches: RegExpExecArray[] = [];
  let position = (/^[\t\n\f\r ]*/.exec(text) as RegExpExecArray)[0].length;
  for (;;) {
    const match = matchAt(termPattern, text, position);
    if (match === undefined) throw fault();
    matches.push(match);
    position += match[0].length;
    if (position >= end) break;
    const separator = matchAt(separatorPattern, text, position);
    if (separator === undefined) throw fault();
    position += separator[0].length;
  }
  const terms = matches.map(parseTerm);
  return { terms, hasPrerelease: terms.some(({ version }) => version.pre.length > 0) };
}

function matchAt(pattern: RegExp, text: string, position: number): RegExpExecArray | undefined {
  pattern.lastIndex = position;
  return pattern.exec(text) ?? undefined;
}

function parseTerm(match: RegExpExecArray): Term {
  const [, operator = '', whole = '', major, minor, patch, , prerelease = ''] = match;
  const isAny = (part: string | undefined): boolean => part === undefined || /^\.?[xX*]$/.test(part);
  const open = isAny(major) ? 'major' : isAny(minor) ? 'minor' : isAny(patch) ? 'patch' : undefined;
  // What follows an open part, and build metadata, is ignored.
  const read =
    open === undefined
      ? whole
      : `${open === 'major' ? 0 : major}${open === 'patch' ? minor : '.0'}.0${prerelease && '-'}${prerelease}`;
  if (read.length > maxVersionLength) throw new SemverError('constraint parser error');
  const version: Version = {
    major: open === 'major' ? 0 : parseNumber(major),
    minor: open === 'major' || open === 'minor' ? 0 : parseNumber(minor),
    patch: open === undefined ? parseNumber(patch) : 0,
    pre: prerelease === '' ? [] : prerelease.split('.').map(prereleasePart),
    build: [],
  };
  return { operator: operators[operator] as Operator, version, open };
}

/** Leading zeros are allowed. */
function parseNumber(part: string | undefined): VersionNumber {
  const digits = (part ?? '').replace(/^\./, '');
  const number = /^\d+$/.test(digits) ? toUint64(digits) : undefined;
  if (number === undefined) throw new SemverError('constraint parser error');
  return number;
}

/** Numbers beyond 64 bits compare as words, as in that library. */
function prereleasePart(part: string): VersionNumber | string {
  if (!/^\d+$/.test(part)) return part;
  if (/^0./.test(part)) throw new SemverError('constraint parser error');
  return toUint64(part) ?? part;
}

function toUint64(digits: string): VersionNumber | undefined {
  const value = Number(digits);
  if (Number.isSafeInteger(value)) return value;
  const big = BigInt(digits);
  return big < 1n << 64n ? big : undefined;
}

const tests: Readonly<Record<Operator, (version: Version, term: Term) => boolean>> = {
  '=': (version, term) =>
    term.open === undefined ? compareVersions(version, term.version) === 0 : isNear(version, term),
  '!=': isOther,
  '>': isAbove,
  '<': (version, term) => compareVersions(version, term.version) < 0,
  '>=': (version, term) => compareVersions(version, term.version) >= 0,
  '<=': isAtMost,
  '~': isNear,
  '^': isCompatible,
};

function isOther(version: Version, { version: other, open }: Term): boolean {
  if (open === 'minor') return version.major !== other.major;
  // A version whose patch is open still compares prereleases.
  const patch = open === 'patch' ? other.patch : version.patch;
  return compareVersions({ ...version, patch }, other) !== 0;
}

function isAbove(version: Version, { version: other, open }: Term): boolean {
  if (open === undefined || open === 'major') return compareVersions(version, other) > 0;
  if (version.major !== other.major) return version.major > other.major;
  return open === 'patch' && version.minor > other.minor;
}

function isAtMost(version: Version, { version: other, open }: Term): boolean {
  if (open === undefined) return compareVersions(version, other) <= 0;
  if (version.major !== other.major) return version.major < other.major;
  return open === 'minor' || version.minor <= other.minor;
}

/**
 * Accepts versions at or above this one of the same minor, or of the same major if minor is open. 0.0.0 and `*`
 * accept all versions above.
 */
function isNear(version: Version, { version: other, open }: Term): boolean {
  if (compareVersions(version, other) < 0) return false;
  const isZero = other.major === 0 && other.minor === 0 && other.patch === 0;
  if (isZero && (open === undefined || open === 'major')) return true;
  return version.major === other.major && (open === 'minor' || version.minor === other.minor);
}

/** Accepts versions at or above this one whose first nonzero part is the same. */
function isCompatible(version: Version, { version: other, open }: Term): boolean {
  if (compareVersions(version, other) < 0) return false;
  if (version.major !== other.major) return false;
  if (other.major > 0 || open === 'minor') return true;
  if (version.minor !== other.minor) return false;
  return other.minor > 0 || open === 'patch' || version.patch === other.patch;
}
