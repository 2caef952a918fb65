import { describe, expect, it } from 'vitest';
import {
  type Representation,
  evaluateConditions,
  parseHttpDate,
  selectRange,
} from '../../../../src/serve/http/conditions.js';

const lastModified = new Date('2026-03-04T05:06:07.800Z');
const same = 'Wed, 04 Mar 2026 05:06:07 GMT';
const before = 'Wed, 04 Mar 2026 05:06:06 GMT';
const after = 'Wed, 04 Mar 2026 05:06:08 GMT';
const gzip: Representation = { etag: '"a-gzip"', otherEtags: ['"a"'], lastModified };

describe('serve/http/conditions', () => {
  it.each<[string, Record<string, string>, string]>([
    ['nothing', {}, 'send'],
    ['If-None-Match of the content', { 'if-none-match': '"a"' }, '"a"'],
    ['If-None-Match of the coding', { 'if-none-match': '"a-gzip"' }, '"a-gzip"'],
    ['If-None-Match, weak', { 'if-none-match': 'W/"a-gzip"' }, '"a-gzip"'],
    ['If-None-Match, one of several', { 'if-none-match': '"x", W/"y","a"' }, '"a"'],
    ['If-None-Match of something else', { 'if-none-match': '"b"' }, 'send'],
    ['If-None-Match without quotes', { 'if-none-match': 'a' }, 'send'],
    ['If-None-Match: *', { 'if-none-match': ' * ' }, '"a-gzip"'],
    [
      'If-None-Match before If-Modified-Since',
      { 'if-none-match': '"b"', 'if-modified-since': after },
      'send',
    ],
    ['If-Modified-Since, same second', { 'if-modified-since': same }, '"a-gzip"'],
    ['If-Modified-Since, later', { 'if-modified-since': after }, '"a-gzip"'],
    ['If-Modified-Since, earlier', { 'if-modified-since': before }, 'send'],
    ['If-Modified-Since that is no date', { 'if-modified-since': 'yesterday' }, 'send'],
    ['If-Match of the content', { 'if-match': '"a"' }, 'send'],
    ['If-Match: *', { 'if-match': '*' }, 'send'],
    ['If-Match, weak', { 'if-match': 'W/"a"' }, 'failed'],
    ['If-Match of something else', { 'if-match': '"b"' }, 'failed'],
    ['If-Match before If-Unmodified-Since', { 'if-match': '"a"', 'if-unmodified-since': before }, 'send'],
    ['If-Match, then If-None-Match', { 'if-match': '"a"', 'if-none-match': '"a"' }, '"a"'],
    ['If-Match that fails before If-None-Match', { 'if-match': '"b"', 'if-none-match': '"a"' }, 'failed'],
    ['If-Unmodified-Since, same second', { 'if-unmodified-since': same }, 'send'],
    ['If-Unmodified-Since, earlier', { 'if-unmodified-since': before }, 'failed'],
    ['If-Unmodified-Since that is no date', { 'if-unmodified-since': '0' }, 'send'],
    ['If-Unmodified-Since that fails', { 'if-unmodified-since': before, 'if-none-match': '"a"' }, 'failed'],
  ])('%s', (_what, headers, expected) => {
    const verdict = evaluateConditions(headers, gzip);
    expect(verdict.kind === 'unchanged' ? verdict.etag : verdict.kind).toBe(expected);
  });

  it('has no opinion on dates where there is none', () => {
    const headers = { 'if-modified-since': after, 'if-unmodified-since': before };
    expect(evaluateConditions(headers, { etag: '"a"', otherEtags: [] })).toEqual({ kind: 'send' });
  });

  it.each([
    ['Sun, 06 Nov 1994 08:49:37 GMT', '1994-11-06T08:49:37.000Z'],
    ['Sunday, 06-Nov-94 08:49:37 GMT', '1994-11-06T08:49:37.000Z'],
    ['Tuesday, 06-Nov-68 08:49:37 GMT', '2068-11-06T08:49:37.000Z'],
    ['Sun Nov  6 08:49:37 1994', '1994-11-06T08:49:37.000Z'],
    ['Sun Nov 16 08:49:37 1994', '1994-11-16T08:49:37.000Z'],
    ['Sun, 31 Feb 2026 08:49:37 GMT', undefined],
    ['Sun, 06 Nov 1994 25:49:37 GMT', undefined],
    ['Sun, 06 Nov 1994 08:49:37 CET', undefined],
    ['Sun, 06 nov 1994 08:49:37 GMT', undefined],
    ['1994-11-06T08:49:37Z', undefined],
    ['', undefined],
    [`Sun, ${'0'.repeat(10_000)}`, undefined],
  ])('reads the date %j', (text, expected) => {
    expect(parseHttpDate(text)?.toISOString()).toBe(expected);
  });

  const content: Representation = { etag: '"a"', otherEtags: [], lastModified };
  it.each<[Record<string, string>, unknown]>([
    [{}, undefined],
    [{ range: 'bytes=0-' }, { start: 0, end: 9 }],
    [{ range: 'bytes=2-4' }, { start: 2, end: 4 }],
    [{ range: 'Bytes=2-99999999999999999999' }, { start: 2, end: 9 }],
    [{ range: 'bytes=-3' }, { start: 7, end: 9 }],
    [{ range: 'bytes=-30' }, { start: 0, end: 9 }],
    [{ range: 'bytes=-0' }, 'unsatisfiable'],
    [{ range: 'bytes=10-' }, 'unsatisfiable'],
    [{ range: 'bytes=4-2' }, undefined],
    [{ range: 'bytes=-' }, undefined],
    [{ range: 'bytes=0-1,4-5' }, undefined],
    [{ range: 'lines=0-1' }, undefined],
    [{ range: 'bytes=a-b' }, undefined],
    [
      { range: 'bytes=2-4', 'if-range': '"a"' },
      { start: 2, end: 4 },
    ],
    [{ range: 'bytes=2-4', 'if-range': 'W/"a"' }, undefined],
    [{ range: 'bytes=2-4', 'if-range': '"b"' }, undefined],
    [
      { range: 'bytes=2-4', 'if-range': same },
      { start: 2, end: 4 },
    ],
    [{ range: 'bytes=2-4', 'if-range': after }, undefined],
    [{ range: 'bytes=2-4', 'if-range': 'whenever' }, undefined],
    [{ range: 'bytes=20-', 'if-range': '"b"' }, undefined],
  ])('takes %j of ten bytes as %j', (headers, expected) => {
    expect(selectRange(headers, 10, content)).toEqual(expected);
  });

  it('has no ranges of nothing', () => {
    expect(selectRange({ range: 'bytes=0-' }, 0, content)).toBeUndefined();
  });
});
