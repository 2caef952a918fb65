import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseConstraint } from '../../../src/core/semver-range.js';
import { SemverError, parseVersion } from '../../../src/core/semver.js';

interface Vector {
  constraint: string;
  met?: string;
  error?: string;
}

const [first, ...lines] = readFileSync(
  new URL('../../../fixtures/vectors/semver-range.jsonl', import.meta.url),
  'utf8',
)
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as unknown);
const { versions } = first as { versions: string[] };

function answer(constraint: string): Omit<Vector, 'constraint'> {
  try {
    const range = parseConstraint(constraint);
    return { met: versions.filter((version) => range.contains(parseVersion(version))).join(' ') };
  } catch (error) {
    if (!(error instanceof SemverError)) throw error;
    return { error: error.message };
  }
}

describe('core/semver-range', () => {
  it('answers every recorded constraint as the Go library does, errors included', () => {
    expect(lines.length).toBe(381);
    for (const { constraint, ...wanted } of lines as Vector[]) {
      expect({ constraint, ...answer(constraint) }).toEqual({ constraint, ...wanted });
    }
  });

  it.each([
    ['1.2.3', '1.2.3', true],
    ['1.2.3', '1.2.3+build', true],
    ['1.2', '1.2.9', true],
    ['>=1.2, <2', '1.9.0', true],
    ['>=1.2 <2', '2.0.0', false],
    ['1.0 - 1.4', '1.4.7', true],
    ['>=1.0.0', '1.1.0-rc.1', false],
    ['>=1.0.0-0', '1.1.0-rc.1', true],
    ['>=1.0.0 <2.0.0-rc', '1.5.0-beta', true],
    ['^0.2', '0.3.0', false],
    ['~1', '1.9.0', true],
    ['<1 || >3', '3.0.1', false],
    ['<1 || >3', '4.0.0', true],
    ['!=1.x', '1.4.0', false],
  ])('%j holds for %s: %s', (constraint, version, holds) => {
    expect(parseConstraint(constraint).contains(parseVersion(version))).toBe(holds);
  });

  it('reads any text in little time, or refuses it', () => {
    const piece = fc.constantFrom(
      '1',
      ' ',
      ', ',
      '.x',
      '-a',
      '+b',
      '||',
      '>=',
      '~>',
      ' - ',
      '*',
      'v',
      '|',
      'é',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 600 }), (pieces) => {
        const { met, error } = answer(pieces.join(''));
        expect(met ?? error).toBeTypeOf('string');
      }),
      { numRuns: 300 },
    );
  });
});
