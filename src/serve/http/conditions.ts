import type { IncomingHttpHeaders } from 'node:http';
import { computeDigest, parseDigest } from '../../core/digest.js';
import { parseByteRange } from '../server/byte-range.js';
import { type Coding, availableCodings } from './encoding.js';
import type { Exchange } from './exchange.js';

/** A representation, for conditional requests and ranges (RFC 9110, sections 13 and 14). */
export interface Representation {
  /** Strong tag, quotes included. */
  etag: string;
  /** Tags of the same content in other codings. */
  otherEtags: readonly string[];
  lastModified?: Date | undefined;
}

/** Result of the conditions of a request; `etag` is the tag of the client. */
type Verdict = { kind: 'send' } | { kind: 'unchanged'; etag: string } | { kind: 'failed' };

const send: Verdict = { kind: 'send' };

/** Evaluates the conditions in the order of RFC 9110 (13.2.2); invalid dates are ignored. */
export function evaluateConditions(headers: IncomingHttpHeaders, representation: Representation): Verdict {
  const tags = [representation.etag, ...representation.otherEtags];
  const { lastModified } = representation;
  const ifMatch = headers['if-match'];
  if (ifMatch !== undefined) {
    if (findTag(ifMatch, tags, 'strong') === undefined) return { kind: 'failed' };
  } else {
    const limit = parseHttpDate(headers['if-unmodified-since']);
    if (limit !== undefined && lastModified !== undefined && getSeconds(lastModified) > getSeconds(limit)) {
      return { kind: 'failed' };
    }
  }
  const ifNoneMatch = headers['if-none-match'];
  if (ifNoneMatch !== undefined) {
    const etag = findTag(ifNoneMatch, tags, 'weak');
    return etag === undefined ? send : { kind: 'unchanged', etag };
  }
  const since = parseHttpDate(headers['if-modified-since']);
  if (since !== undefined && lastModified !== undefined && getSeconds(lastModified) <= getSeconds(since)) {
    return { kind: 'unchanged', etag: representation.etag };
  }
  return send;
}

/** Finds the first of `tags` in a list of tags; `*` matches the first. */
function findTag(list: string, tags: readonly string[], comparison: 'strong' | 'weak'): string | undefined {
  if (list.trim() === '*') return tags[0];
  for (const [, weak, tag] of list.matchAll(/(W\/)?("[^"]*")/g)) {
    if (weak !== undefined && comparison === 'strong') continue;
    if (tags.includes(tag as string)) return tag;
  }
  return undefined;
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const month = `(${months.join('|')})`;
const dateForms = [
  // Sun, 06 Nov 1994 08:49:37 GMT
  new RegExp(
    `^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?<day>\\d\\d) (?<month>${month}) (?<year>\\d{4}) (?<time>\\d\\d:\\d\\d:\\d\\d) GMT$`,
  ),
  // Sunday, 06-Nov-94 08:49:37 GMT
  new RegExp(
    `^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?<day>\\d\\d)-(?<month>${month})-(?<year>\\d\\d) (?<time>\\d\\d:\\d\\d:\\d\\d) GMT$`,
  ),
  // Sun Nov  6 08:49:37 1994
  new RegExp(
    `^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?<month>${month}) (?<day>[ \\d]\\d) (?<time>\\d\\d:\\d\\d:\\d\\d) (?<year>\\d{4})$`,
  ),
];

/** Parses a date in one of the three forms of RFC 9110 (5.6.7); undefined for others. */
export function parseHttpDate(text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  for (const form of dateForms) {
    const groups = form.exec(text.trim())?.groups;
    if (groups === undefined) continue;
    const { day = '', month: name = '', year = '', time = '' } = groups;
    // Two digits: the pivot of Go.
    const century = year.length > 2 ? '' : Number(year) >= 69 ? '19' : '20';
    const monthNumber = String(months.indexOf(name) + 1).padStart(2, '0');
    const iso = `${century}${year}-${monthNumber}-${day.trim().padStart(2, '0')}T${time}.000Z`;
    const date = new Date(iso);
    // An invalid day would overflow into the next month.
    return !Number.isNaN(date.getTime()) && date.toISOString() === iso ? date : undefined;
  }
  return undefined;
}

function getSeconds(date: Date): number {
  return Math.floor(date.getTime() / 1000);
}

/**
 * Returns the single range of a request; undefined, for the whole content, for other requests and for a range whose
 * `If-Range` does not match.
 */
export function selectRange(
  headers: IncomingHttpHeaders,
  size: number,
  { etag, lastModified }: Omit<Representation, 'otherEtags'>,
): { start: number; end: number } | 'unsatisfiable' | undefined {
  const range = size === 0 ? undefined : parseByteRange(headers.range, size);
  if (range === undefined || range === 'reversed') return undefined;
  const condition = headers['if-range'];
  if (typeof condition === 'string' && !matchesRangeCondition(condition.trim(), etag, lastModified))
    return undefined;
  return range;
}

function matchesRangeCondition(condition: string, etag: string, lastModified: Date | undefined): boolean {
  if (condition.startsWith('"')) return condition === etag;
  const date = parseHttpDate(condition);
  return date !== undefined && lastModified !== undefined && getSeconds(date) === getSeconds(lastModified);
}

/** Returns the strong tag of a content in a coding, quotes included. */
export type EntityTags = (coding?: Coding) => string;

/** Returns the tags of a content, from its hash, the query and the coding. */
export function getTags(hash: string, query: readonly string[] = []): EntityTags {
  const suffix = query.every((text) => text === '') ? '' : `-${computeShortDigest(query)}`;
  const tag = `sha256-${parseDigest(hash).hex}${suffix}`;
  return (coding) => `"${tag}${coding === undefined ? '' : `-${coding}`}"`;
}

function computeShortDigest(texts: readonly string[]): string {
  return parseDigest(computeDigest(JSON.stringify(texts))).hex.slice(0, 16);
}

/** Responds with 304 or 412 if the conditions of a request require it. Returns whether it did. */
export function respondToConditions(
  { request, response }: Exchange,
  tags: EntityTags,
  coding: Coding | undefined,
  lastModified?: Date,
): boolean {
  const etag = tags(coding);
  const otherEtags = [tags(), ...availableCodings.map(tags)].filter((tag) => tag !== etag);
  const verdict = evaluateConditions(request.headers, { etag, otherEtags, lastModified });
  if (verdict.kind === 'send') return false;
  if (verdict.kind === 'unchanged') {
    response.statusCode = 304;
    response.setHeader('ETag', verdict.etag);
  } else response.statusCode = 412;
  response.end();
  return true;
}
