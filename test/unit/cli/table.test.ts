import { describe, expect, it } from 'vitest';
import { formatTable } from '../../../src/cli/table.js';

describe('cli/table', () => {
  it('counts characters, not bytes or halves, for the width of a column', () => {
    expect(formatTable(['A', 'B'], [['é\u{1f600}', 'x']])).toBe('A   B\né\u{1f600}  x\n');
  });
});
