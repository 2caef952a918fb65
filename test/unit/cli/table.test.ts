import { describe, expect, it } from 'vitest';
import { formatTable } from '../../../src/cli/table.js';

describe('cli/table', () => {
  it('counts characters, not bytes or halves, for the width of a column', () => {
    expect(formatTable(['A', 'B'], [['é\u{1f600}', 'x']])).toBe('A   B\né\u{1f600}  x\n');
  });

  it('keeps a cell in its line, whatever it holds', () => {
    expect(formatTable(['A', 'B'], [['a\nforged', '\x1b[2Kb\t']])).toBe(
      'A            B\na\\x0aforged  \\x1b[2Kb\\x09\n',
    );
  });
});
