import { OpmateError } from './errors.js';
import { quoteGo } from './go-json-quote.js';
import { sortedByBytes } from './order.js';

/** How many candidates with the same digits are compared letter by letter. */
const maxCandidates = 16;

/** Shorter names are not taken for the rest of a name whose beginning or end was forgotten. */
const minAffix = 3;

/** How many comparisons one index makes in all; a catalog full of wrong names gets no advice on the rest. */
const maxComparisons = 50_000;

/**
 * Finds the name that a misspelled one was meant to be. Names of bundles differ from each other in their
 * digits, and slips hardly ever touch these: candidates are the names with the same digits.
 */
export class NameIndex {
  private readonly byDigits = new Map<string, string[]>();
  private readonly names: ReadonlySet<string>;
  private comparisons = 0;

  constructor(names: Iterable<string>) {
    this.names = new Set(names);
    for (const name of this.names) {
      // An empty name is a fault of the catalog, and no advice.
      if (name === '') continue;
      const digits = getDigits(name);
      const same = this.byDigits.get(digits);
      if (same === undefined) this.byDigits.set(digits, [name]);
      else if (same.length < maxCandidates) same.push(name);
    }
  }

  /** The nearest other spelling of `name`; undefined when it is known as it is or nothing is near. */
  nearest(name: string): string | undefined {
    if (name === '' || this.names.has(name)) return undefined;
    let best: string | undefined;
    let bestDistance = Math.min(name.length, Math.max(2, Math.floor(name.length / 3)) + 1);
    for (const candidate of this.byDigits.get(getDigits(name)) ?? []) {
      if (this.comparisons++ >= maxComparisons) return undefined;
      const distance = spellingDistance(name, candidate, bestDistance);
      if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
    }
    return best;
  }
}

function getDigits(name: string): string {
  return name.match(/\d+/g)?.join('.') ?? '';
}

/**
 * Edits between two names, or `limit` where there are as many or more. A forgotten or added beginning or
 * end, as of `widget.` in `widget.v1`, is one edit.
 */
function spellingDistance(a: string, b: string, limit: number): number {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  if (short.length >= minAffix && (long.endsWith(short) || long.startsWith(short))) return 1;
  if (long.length > 256 || long.length - short.length >= limit) return limit;
  let row = Array.from({ length: short.length + 1 }, (_, index) => index);
  for (let i = 1; i <= long.length; i++) {
    const next = [i];
    for (let j = 1; j <= short.length; j++) {
      const change = (row[j - 1] as number) + (long[i - 1] === short[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[short.length] as number;
}

/** What has a name in a catalog. */
export type NamedKind = 'package' | 'channel' | 'bundle';

/** Returns `package "a", "b" not found in SCOPE`. */
export function describeMissing(kind: NamedKind, names: string | readonly string[], scope?: string): string {
  const quoted = [names].flat().map(quoteGo).join(', ');
  return `${kind} ${quoted} not found${scope === undefined ? '' : ` in ${scope}`}`;
}

/** Returns the hint for a name that is not known: the nearest name, else the last ones with its stem, else all. */
export function suggestName(
  kind: NamedKind,
  name: string,
  known: Iterable<string>,
  index?: NameIndex,
): string {
  const names = new Set(known);
  names.delete('');
  if (names.size === 0) return `check the catalog: it has no ${kind}s`;
  const nearest = (index ?? new NameIndex(names)).nearest(name);
  if (nearest !== undefined) return `did you mean ${quoteGo(nearest)}?`;
  // Other versions of the same operator, perhaps.
  const stem = /^\D*/.exec(name)?.[0] ?? '';
  const related = stem === '' ? [] : [...names].filter((other) => other.startsWith(stem));
  const shown = related.length > 0 ? sortedByBytes(related).slice(-maxRelated) : names;
  return listNames(`use a known ${kind}:`, shown);
}

/** How many names with the same stem a hint lists. */
const maxRelated = 5;

/** Returns the error for names that are not known, with the hint for the first of them. */
export function notFound(
  kind: NamedKind,
  names: string | readonly string[],
  known: Iterable<string>,
  { scope, prefix = '', file }: { scope?: string; prefix?: string; file?: string } = {},
): OpmateError {
  const [first = ''] = [names].flat();
  const message = prefix + describeMissing(kind, names, scope);
  return new OpmateError('NOT_FOUND', message, { hint: suggestName(kind, first, known), file });
}

/** Throws OpmateError NOT_FOUND, with the nearest name, for the first of these names that is not known. */
export function requireKnown(
  kind: NamedKind,
  names: readonly string[],
  known: readonly { name: string }[],
): void {
  const all = new Set(known.map(({ name }) => name));
  for (const name of names) if (!all.has(name)) throw notFound(kind, name, all);
}

/** How many names one message lists. */
const maxListed = 10;

/** Ends a sentence with names in byte order: `it has "a", "b" and 7 more`. */
export function listNames(begin: string, names: Iterable<string>): string {
  const sorted = sortedByBytes(names).filter((name) => name !== '');
  return `${begin} ${joinNames(sorted) || 'nothing'}`;
}

/** Joins names in the given order: `"a", "b" and 7 more`. */
export function joinNames(names: readonly string[]): string {
  const more = names.length - maxListed;
  const shown = names.slice(0, maxListed).map(quoteGo).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
}
