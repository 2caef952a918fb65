import { describe, expect, it } from 'vitest';
import { parseLabelSelector } from '../../../src/graph/resolve-selector.js';

const labels = { tier: 'gold', 'example.com/zone': 'eu', empty: '' };

describe('graph/resolve-selector', () => {
  it.each([
    ['', true],
    ['tier=gold', true],
    ['tier==gold,example.com/zone=eu', true],
    ['tier=gold,example.com/zone=us', false],
    ['tier!=gold', false],
    ['other!=gold', true],
    ['tier in (silver, gold)', true],
    ['tier notin (silver,gold), empty', false],
    ['other notin (a)', true],
    ['other in (a)', false],
    ['empty=', true],
    ['!other, tier', true],
    ['constructor', false],
  ])('%j: %s', (selector, wanted) => {
    expect(parseLabelSelector(selector)(labels)).toBe(wanted);
  });

  it.each(['=a', 'a b', 'a in', 'a in b', 'a=b=c', 'a>1', '!', 'a in (b'])('refuses %j', (selector) => {
    expect(() => parseLabelSelector(selector)).toThrow('invalid requirement');
    // Read in linear time.
    expect(() => parseLabelSelector(`${selector}${'('.repeat(500_000)}`)).toThrow('invalid requirement');
  });
});

it.each(['(,', 'a,', 'a(', 'a-', 'a in (', '! ', 'a '])('reads a megabyte of %j in linear time', (piece) => {
  const text = piece.repeat(500_000);
  try {
    parseLabelSelector(text)({});
  } catch (error) {
    expect(error).toMatchObject({ code: 'USAGE' });
  }
});
