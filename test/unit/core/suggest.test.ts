import { describe, expect, it } from 'vitest';
import { NameIndex } from '../../../src/core/suggest.js';

describe('core/suggest', () => {
  const index = new NameIndex(['widget.v1.0.0', 'widget.v1.1.0', 'gadget.v1.1.0', 'stable', 'alpha', 'a']);

  it.each([
    ['v1.1.0', 'widget.v1.1.0'],
    ['widget-v1.0.0', 'widget.v1.0.0'],
    ['Widget.v1.0.0', 'widget.v1.0.0'],
    ['stabel', 'stable'],
  ])('takes %s for %s', (name, meant) => {
    expect(index.nearest(name)).toBe(meant);
  });

  it('takes two swapped letters for one edit', () => {
    expect(new NameIndex(['init', 'list']).nearest('lsit')).toBe('list');
    expect(new NameIndex(['prune', 'publish']).nearest('purne')).toBe('prune');
  });

  it('compares hundreds of names without digits', () => {
    const many = Array.from(
      { length: 676 },
      (_, i) => `${'abcdefghijklmnopqrstuvwxyz'[i % 26]}-${'x'.repeat(i / 26)}`,
    );
    expect(new NameIndex([...many, 'last-package']).nearest('lst-package')).toBe('last-package');
  });

  it.each(['widget.v1.0.1', 'widget.v1.0.0', 'beta', '', 'b', 'something.else.v1.0.0'])(
    'does not take %j for another',
    (name) => {
      expect(index.nearest(name)).toBeUndefined();
    },
  );

  it('compares a bounded number of names', () => {
    const many = new NameIndex(Array.from({ length: 10_000 }, (_, i) => `${'x'.repeat(i % 200)}${i % 7}`));
    for (let i = 0; i < 20_000; i++) many.nearest(`${'y'.repeat(i % 200)}${i % 7}`);
  });
});
