import { OpmateError } from './errors.js';
import { quoteGo } from './go-json-quote.js';
import { sortedByBytes } from './order.js';

/** Maximum number of candidates with the same digits that are compared letter by letter. */
const maxCandidates = 1024;

/** Minimum length of a name that may be completed at its start or end. */
const minAffix = 3;

/** Maximum number of compared letter pairs per index; further unknown names of a broken catalog get no suggestion. */
const maxPairs = 20_000_000;

/**
 * Finds the name that a misspelled one stands for. Bundle names differ in their digits, which typos rarely affect:
 * candidates have the same digits.
 */
export class NameIndex {
  private readonly byDigits = new Map<string, string[]>();
  private readonly names: ReadonlySet<string>;
  private pairs = 0;

  constructor(names: Iterable<string>) {
    this.names = new Set(names);
    for (const name of this.names) {
      // An empty name is a fault of the catalog, not a suggestion.
      if (name === '') continue;
      const digits = getDigits(name);
      const same = this.byDigits.get(digits);
      if (same === undefined) this.byDigits.set(digits, [name]);
      else if (same.length < maxCandidates) same.push(name);
    }
  }

  /** Returns the most similar known name; undefined if `name` is known or nothing is similar. */
  nearest(name: string): string | undefined {
    if (name === '' || this.names.has(name)) return undefined;
    let best: string | undefined;
    // Two of three letters are another name, not a typo.
    const maxEdits = name.length <= 3 ? 1 : Math.max(2, Math.floor(name.length / 3));
    let bestDistance = Math.min(name.length, maxEdits + 1);
    for (const candidate of this.byDigits.get(getDigits(name)) ?? []) {
      if ((this.pairs += name.length * candidate.length) > maxPairs) return undefined;
      const distance = spellingDistance(name, candidate, bestDistance);
      if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
    }
    return best;
  }
}

function getDigits(name: string): string {
  return withDigits(name).match(/\d+/g)?.join('.') ?? '';
}

/** Returns a name with the digits that letters were probably typed for: `v1.1.O`. */
function withDigits(name: string): string {
  return name.replace(/(?<=[\d.])[oO](?=[\d.]|$)/g, '0').replace(/(?<=[\d.])[lI](?=[\d.]|$)/g, '1');
}

/**
 * Returns the edit distance of two names, at most `limit`. Two swapped letters are one edit, and so is a missing or extra
 * start or end, such as `widget.` in `widget.v1`.
 */
function spellingDistance(a: string, b: string, limit: number): number {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  if (short.length >= minAffix && (long.endsWith(short) || long.startsWith(short))) return 1;
  if (long.length > 256 || long.length - short.length >= limit) return limit;
  let previous: readonly number[] = [];
  let row = Array.from({ length: short.length + 1 }, (_, index) => index);
  for (let i = 1; i <= long.length; i++) {
    const next = [i];
    for (let j = 1; j <= short.length; j++) {
      const change = (row[j - 1] as number) + (long[i - 1] === short[j - 1] ? 0 : 1);
      const isSwapped = long[i - 1] === short[j - 2] && long[i - 2] === short[j - 1];
      const swap = isSwapped && i > 1 && j > 1 ? (previous[j - 2] as number) + 1 : Infinity;
      next.push(Math.min(change, swap, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    [previous, row] = [row, next];
  }
  return row[short.length] as number;
}

/** Returns the hint for a choice among known names: `use "a"`, `use one of a, b`. */
export function suggestOneOf(names: readonly string[]): string {
  return names.length === 1 ? `use ${quoteGo(names[0] as string)}` : `use one of ${names.join(', ')}`;
}

/** Kinds of named things in a catalog. */
export type NamedKind = 'package' | 'channel' | 'bundle';

/** Returns `package "a", "b" not found in SCOPE`. */
export function describeMissing(kind: NamedKind, names: string | readonly string[], scope?: string): string {
  const quoted = [names].flat().map(quoteGo).join(', ');
  return `${kind} ${quoted} not found${scope === undefined ? '' : ` in ${scope}`}`;
}

/** Returns the hint for an unknown name: the nearest name, else the last ones with its stem, else all names. */
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
  // These may be other versions of the same operator.
  const stem = /^\D*/.exec(name)?.[0] ?? '';
  const related = stem === '' ? [] : [...names].filter((other) => other.startsWith(stem));
  const shown = related.length > 0 ? sortedByBytes(related).slice(-maxRelated) : names;
  return listNames(`use a known ${kind}:`, shown);
}

/** Maximum number of names with the same stem in a hint. */
const maxRelated = 5;

/** Returns the error for unknown names, with the hint for the first of them. */
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

/** Throws OpmateError NOT_FOUND with the nearest name for the first unknown name. */
export function requireKnown(
  kind: NamedKind,
  names: readonly string[],
  known: readonly { name: string }[],
): void {
  const all = new Set(known.map(({ name }) => name));
  for (const name of names) if (!all.has(name)) throw notFound(kind, name, all);
}

/** Maximum number of names in a message. */
const maxListed = 10;

/** Appends names in byte order to a sentence: `it has "a", "b" and 7 more`. */
export function listNames(begin: string, names: Iterable<string>): string {
  const sorted = sortedByBytes(names).filter((name) => name !== '');
  return `${begin} ${joinNames(sorted) || 'nothing'}`;
}

/** Joins names in order: `"a", "b" and 7 more`. */
export function joinNames(names: readonly string[]): string {
  const more = names.length - maxListed;
  const shown = names.slice(0, maxListed).map(quoteGo).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
}
