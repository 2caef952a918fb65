import { describe, expect, it } from 'vitest';
import { createBlockedImages } from '../../../../src/mirror/image-set/blocked-images.js';

const patterns = (texts: string[], options = {}) =>
  createBlockedImages(
    texts.map((name) => ({ name, pattern: new RegExp(name), place: { line: 1, column: 1 } })),
    options,
  );

describe('mirror/blocked-images', () => {
  it('tells the first pattern that matches any of the names', () => {
    const findBlocked = patterns(['^nothing$', 'acme/.*@', 'mirror.test']);
    expect(findBlocked(['quay.io/acme/app@sha256:1', 'mirror.test/acme/app:1'])).toBe('acme/.*@');
    expect(findBlocked(['quay.io/acme/app:1', 'mirror.test/acme/app:1'])).toBe('mirror.test');
    expect(findBlocked(['quay.io/acme/app:1'])).toBeUndefined();
    expect(patterns([])(['quay.io/acme/app:1'])).toBeUndefined();
  });

  it('stops a pattern that would take for ever', () => {
    const search = (): unknown => patterns(['(a*)*$'], { maxMilliseconds: 100 })([`${'a'.repeat(60)}:v1`]);
    expect(search).toThrow(/^mirror.blockedImages: "\(a\*\)\*\$": matching "a+:v1" takes too long$/);
  });

  it('limits the time of each pattern, not of all of them together', () => {
    const slow = Array.from({ length: 400 }, () => '^(a+)+$');
    const name = `${'a'.repeat(17)}:v1`;
    expect(patterns([...slow, 'v1'], { maxMilliseconds: 100 })([name])).toBe('v1');
  });
});
