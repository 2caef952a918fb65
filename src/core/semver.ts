/**
 * Versions and version ranges as OLM reads them, by the rules of the Go library blang/semver v4: 64-bit numbers,
 * ranges that compare by plain precedence, that library's error texts. Its handling of odd ranges is kept, because
 * published catalogs rely on it.
 */
import { OpmateError } from './errors.js';
import { quoteGo } from './go-json-quote.js';
import { compareBytes } from './order.js';

/** A number below 2^53; a bigint from 2^53 to 2^64. */
export type VersionNumber = number | bigint;

/** A prerelease part; a number if it is numeric. */
type PrereleasePart = VersionNumber | string;

export interface Version {
  readonly major: VersionNumber;
  readonly minor: VersionNumber;
  readonly patch: VersionNumber;
  readonly pre: readonly PrereleasePart[];
  /** Build metadata, which does not affect precedence. */
  readonly build: readonly string[];
}

export interface VersionRange {
  contains(version: Version): boolean;
}

/** Range whose versions depend only on their order to some bounds. */
export interface ComparedRange extends VersionRange {
  bounds: readonly Version[];
}

/** Release of a bundle version: its dot-separated segments, none for an empty release. */
export type Release = readonly PrereleasePart[];

/** An invalid version, range or release. The message is Go's. */
export class SemverError extends OpmateError {
  override readonly name: string = 'SemverError';
  constructor(message: string) {
    super('INVALID', message);
  }
}

/** Parses `X.Y.Z[-prerelease][+build]`, without a leading `v`. Throws SemverError. */
export function parseVersion(text: string): Version {
  if (text === '') throw new SemverError('Version string empty');
  const firstDot = text.indexOf('.');
  const secondDot = firstDot < 0 ? -1 : text.indexOf('.', firstDot + 1);
  if (secondDot < 0) throw new SemverError('No Major.Minor.Patch elements found');
  const major = parseElement('major', text.slice(0, firstDot));
  const minor = parseElement('minor', text.slice(firstDot + 1, secondDot));

  const rest = text.slice(secondDot + 1);
  const plus = rest.indexOf('+');
  const beforeBuild = plus < 0 ? rest : rest.slice(0, plus);
  const dash = beforeBuild.indexOf('-');
  const patch = parseElement('patch', dash < 0 ? beforeBuild : beforeBuild.slice(0, dash));
  const pre =
    dash < 0
      ? []
      : beforeBuild
          .slice(dash + 1)
          .split('.')
          .map(parsePrereleasePart);
  const build = plus < 0 ? [] : rest.slice(plus + 1).split('.');
  for (const part of build) {
    if (part === '') throw new SemverError('Build meta data is empty');
    if (!isAlphanumeric(part)) {
      throw new SemverError(`Invalid character(s) found in build meta data ${quoteGo(part)}`);
    }
  }
  return { major, minor, patch, pre, build };
}

/**
 * Parses a version that may also have white space around it, a leading `v`, leading zeros, or no minor and patch.
 * Throws SemverError.
 */
export function parseTolerantVersion(text: string): Version {
  const trimmed = text.trim().replace(/^v/, '');
  const parts = trimmed.split('.');
  const elements =
    parts.length > 3 ? [parts[0] as string, parts[1] as string, parts.slice(2).join('.')] : parts;
  const stripped = elements.map(withoutLeadingZeros);
  if (stripped.length < 3 && /[+-]/.test(stripped.at(-1) as string)) {
    throw new SemverError('Short version cannot contain PreRelease/Build meta data');
  }
  while (stripped.length < 3) stripped.push('0');
  return parseVersion(stripped.join('.'));
}

/** Removes leading zeros; a longer element that starts with no digit gets one, which errors show. */
function withoutLeadingZeros(element: string): string {
  if (element.length < 2 && element <= '\x7f') return element;
  const trimmed = element.replace(/^0+/, '');
  return /^\d/.test(trimmed) ? trimmed : `0${trimmed}`;
}

/** Hint for an invalid version. */
export const versionHint = 'use a version such as 1.2.3 or 1.2.3-rc.1';

/** Returns the result of a parser of this module; undefined for invalid text. */
export function tryParse<T>(parse: (text: string) => T, text: string): T | undefined {
  try {
    return parse(text);
  } catch (error) {
    if (error instanceof SemverError) return undefined;
    throw error;
  }
}

/** Returns the text of a version, which `parseVersion` reads as the same version. */
export function formatVersion(version: Version): string {
  const { major, minor, patch, pre, build } = version;
  const prerelease = pre.length > 0 ? `-${pre.join('.')}` : '';
  return `${major}.${minor}.${patch}${prerelease}${build.length > 0 ? `+${build.join('.')}` : ''}`;
}

/** Compares versions by precedence; build metadata is ignored. */
export function compareVersions(a: Version, b: Version): number {
  const order =
    compareNumbers(a.major, b.major) || compareNumbers(a.minor, b.minor) || compareNumbers(a.patch, b.patch);
  if (order !== 0) return order;
  // A prerelease precedes its release.
  if (a.pre.length === 0 || b.pre.length === 0) return Math.sign(b.pre.length - a.pre.length);
  return compareParts(a.pre, b.pre);
}

/**
 * Parses the release of a bundle: at most 20 characters, segments as in a prerelease. Empty text is no release.
 * Throws SemverError with a line for each invalid segment.
 */
export function parseRelease(text: string): Release {
  if (text === '') return [];
  if (new TextEncoder().encode(text).length > 20) {
    throw new SemverError(`invalid release ${quoteGo(text)}: exceeds maximum length of 20 characters`);
  }
  const faults: string[] = [];
  const release: PrereleasePart[] = [];
  for (const [index, segment] of text.split('.').entries()) {
    try {
      release.push(parsePrereleasePart(segment));
    } catch (error) {
      if (!(error instanceof SemverError)) throw error;
      faults.push(`segment ${index}: ${error.message}`);
    }
  }
  if (faults.length > 0) throw new SemverError(`invalid release ${quoteGo(text)}: ${faults.join('\n')}`);
  return release;
}

function parseElement(name: 'major' | 'minor' | 'patch', text: string): VersionNumber {
  if (/[^0-9]/.test(text))
    throw new SemverError(`Invalid character(s) found in ${name} number ${quoteGo(text)}`);
  if (hasLeadingZero(text)) {
    const title = name[0]?.toUpperCase() + name.slice(1);
    throw new SemverError(`${title} number must not contain leading zeroes ${quoteGo(text)}`);
  }
  return parseUint(text);
}

function parsePrereleasePart(text: string): PrereleasePart {
  if (text === '') throw new SemverError('Prerelease is empty');
  if (!/[^0-9]/.test(text)) {
    if (hasLeadingZero(text)) {
      throw new SemverError(`Numeric PreRelease version must not contain leading zeroes ${quoteGo(text)}`);
    }
    return parseUint(text);
  }
  if (!isAlphanumeric(text))
    throw new SemverError(`Invalid character(s) found in prerelease ${quoteGo(text)}`);
  return text;
}

function parseUint(digits: string): VersionNumber {
  if (digits === '') throw new SemverError('strconv.ParseUint: parsing "": invalid syntax');
  const value = Number(digits);
  if (Number.isSafeInteger(value)) return value;
  // The length check keeps long digit strings out of BigInt.
  if (digits.length > 20 || BigInt(digits) >= 1n << 64n) {
    throw new SemverError(`strconv.ParseUint: parsing ${quoteGo(digits)}: value out of range`);
  }
  return BigInt(digits);
}

function hasLeadingZero(text: string): boolean {
  return text.length > 1 && text.startsWith('0');
}

function isAlphanumeric(text: string): boolean {
  return !/[^0-9A-Za-z-]/.test(text);
}

function compareNumbers(a: VersionNumber, b: VersionNumber): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Compares prereleases: numbers precede words, a prefix precedes the longer list. */
function compareParts(a: readonly PrereleasePart[], b: readonly PrereleasePart[]): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a[i] as PrereleasePart;
    const y = b[i] as PrereleasePart;
    let order: number;
    if (typeof x === 'string') order = typeof y === 'string' ? compareBytes(x, y) : 1;
    else order = typeof y === 'string' ? -1 : compareNumbers(x, y);
    if (order !== 0) return Math.sign(order);
  }
  return Math.sign(a.length - b.length);
}

/** Condition on the order of a version and a bound. */
interface Comparison {
  bound: Version;
  isInOrder: (order: number) => boolean;
}

/** Conditions of the operators on the order of a version and the operand. */
const operators: Readonly<Record<string, (order: number) => boolean>> = {
  '': (order) => order === 0,
  '=': (order) => order === 0,
  '==': (order) => order === 0,
  '!': (order) => order !== 0,
  '!=': (order) => order !== 0,
  '>': (order) => order > 0,
  '>=': (order) => order >= 0,
  '<': (order) => order < 0,
  '<=': (order) => order <= 0,
};

/**
 * Parses a range: comparisons such as `>=1.2.3`. Those joined by spaces must all hold, of those joined by ` || ` at least
 * one. `x` may replace minor and patch. Throws SemverError.
 */
export function parseRange(text: string): ComparedRange {
  const groups = splitGroups(splitTerms(text))
    .map((terms) => terms.flatMap(expandWildcard))
    .map((terms) => terms.map(parseComparison));
  return {
    bounds: groups.flat().map(({ bound }) => bound),
    contains: (version) =>
      groups.some(
        (group) =>
          // Empty between two `||`; the Go library panics here.
          group.length > 0 &&
          group.every(({ bound, isInOrder }) => isInOrder(compareVersions(version, bound))),
      ),
  };
}

/**
 * Splits at spaces, except after an operator. One-byte terms are dropped, as in the Go library: `1.0.0 - 2.0.0` is
 * two equalities.
 */
function splitTerms(text: string): string[] {
  const terms: string[] = [];
  const add = (term: string): void => {
    if (term.length > 1 || term > '\x7f') terms.push(term.replaceAll(' ', ''));
  };
  let start = 0;
  let last = '';
  for (let i = 0; i < text.length; i++) {
    const character = text[i] as string;
    if (character !== ' ') last = character;
    else if (last !== '>' && last !== '<' && last !== '=') {
      add(text.slice(start, i));
      start = i + 1;
    }
  }
  add(text.slice(start));
  return terms;
}

function splitGroups(terms: string[]): string[][] {
  if (terms[0] === '||') throw new SemverError("First element in range is '||'");
  const groups: string[][] = [[]];
  for (const term of terms) {
    if (term === '||') groups.push([]);
    else groups.at(-1)?.push(term);
  }
  if (groups.at(-1)?.length === 0) throw new SemverError("Last element in range is '||'");
  return groups;
}

/** Splits a term before its first digit. */
function splitOperator(term: string): { operator: string; version: string } {
  const position = term.search(/\p{Nd}/u);
  if (position < 0) throw new SemverError(`Could not get version from string: ${quoteGo(term)}`);
  return { operator: term.slice(0, position).trim(), version: term.slice(position) };
}

function parseComparison(term: string): Comparison {
  const { operator, version } = splitOperator(term);
  const whole = quoteGo(operator + version);
  const fault = (what: string): SemverError =>
    new SemverError(`Could not parse Range ${quoteGo(term)}: ${what}`);
  const isInOrder = Object.hasOwn(operators, operator) ? operators[operator] : undefined;
  if (isInOrder === undefined) throw fault(`Could not parse comparator ${quoteGo(operator)} in ${whole}`);
  try {
    return { bound: parseVersion(version), isInOrder };
  } catch (error) {
    if (!(error instanceof SemverError)) throw error;
    throw fault(`Could not parse version ${quoteGo(version)} in ${whole}: ${error.message}`);
  }
}

/**
 * Expands a term with an `x` into plain comparisons. An `x` in another place than the last leaves a term without a
 * version, which fails later.
 */
function expandWildcard(term: string): string[] {
  if (!term.includes('x')) return [term];
  const { operator, version } = splitOperator(term);
  const lowest = withoutWildcard(version);
  const next = aboveWildcard(version, lowest);
  switch (operator) {
    case '>':
      return [`>=${next}`];
    case '<=':
      return [`<${next}`];
    case '':
    case '=':
    case '==':
      return [`>=${lowest}`, `<${next}`];
    case '!':
    case '!=':
      // Both can never hold, as in the Go library.
      return [`<${lowest}`, `>=${next}`];
    case '>=':
    case '<':
      return [operator + lowest];
    default:
      return [lowest];
  }
}

function withoutWildcard(version: string): string {
  const zeroed = version.replace('.x.x', '.x').replace('.x', '.0');
  return zeroed.split('.').length === 2 ? `${zeroed}.0` : zeroed;
}

/** Returns the lowest version above a wildcard; empty if missing. */
function aboveWildcard(version: string, lowest: string): string {
  const places = version.split('.');
  if (places.at(-1) !== 'x' || places.length < 2 || places.length > 3) return '';
  const raised = places.length - 2;
  const parts = lowest.split('.');
  const digits = parts[raised] ?? '';
  if (!/^\d{1,19}$/.test(digits) || BigInt(digits) >= 1n << 63n) return '';
  parts[raised] = String(BigInt(digits) + 1n);
  return parts.join('.');
}
