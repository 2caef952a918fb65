import { describe, expect, it } from 'vitest';
import { computeDigest } from '../../../../src/core/digest.js';
import { createIndexBuilder, parseContentIndex } from '../../../../src/serve/catalogs/content-index.js';

const state = { hash: `sha256:${'a'.repeat(64)}`, storedAt: new Date('2026-03-04T05:06:07.800Z') };

function encoded(): string {
  const builder = createIndexBuilder();
  builder.add({ schema: 'olm.package', package: '', name: 'b' }, 10);
  builder.add({ schema: 'olm.bundle', package: 'a', name: '__proto__' }, 20);
  builder.add({ schema: 'olm.bundle', package: 'b', name: '' }, 30);
  return builder.finish().encode(state);
}

/** An index whose checksum is right, whatever it says. */
function withBody(change: (body: Record<string, unknown>) => unknown): string {
  const text = encoded();
  const changed = JSON.stringify(
    change(JSON.parse(text.slice(text.indexOf('\n'))) as Record<string, unknown>),
  );
  return `${computeDigest(changed)}\n${changed}`;
}

describe('serve/catalogs/content-index', () => {
  it('reads an encoded index', () => {
    const { index, state: read } = parseContentIndex(encoded());
    expect(read).toEqual(state);
    expect(index).toMatchObject({ count: 3, size: 60, packages: ['a', 'b'] });
    expect(index.find({ schema: 'olm.bundle', package: '', name: '' })).toEqual([{ offset: 10, length: 50 }]);
    expect(index.find({ schema: '', package: '', name: '__proto__' })).toEqual([{ offset: 10, length: 20 }]);
    expect(index.find({ schema: '', package: 'constructor', name: '' })).toEqual([]);
    expect(index.encode(state)).toBe(encoded());
  });

  it('takes fifty bytes per blob in addition to the names', () => {
    const builder = createIndexBuilder();
    for (let i = 0; i < 100_000; i++) builder.add({ schema: 'olm.bundle', package: 'p', name: 'n' }, 100);
    const before = process.memoryUsage().arrayBuffers;
    const index = builder.finish();
    expect(index.count).toBe(100_000);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50 * 100_000);
  });

  it.each<[string, string]>([
    ['nothing', ''],
    ['no line break', encoded().replaceAll('\n', ' ')],
    ['a changed byte', encoded().replace('olm.bundle', 'olm.bundlf')],
    ['null', withBody(() => null)],
    ['a list', withBody(() => [])],
    ['no JSON', `${computeDigest('{"version":1')}\n{"version":1`],
    ['another version', withBody((body) => ({ ...body, version: 2 }))],
    ['no hash', withBody((body) => ({ ...body, hash: 5 }))],
    ['another size', withBody((body) => ({ ...body, size: 61 }))],
    ['no date', withBody((body) => ({ ...body, storedAt: 'then' }))],
    ['blobs that are no numbers', withBody((body) => ({ ...body, blobs: ['0', 0, 0, 60] }))],
    ['half a blob', withBody((body) => ({ ...body, blobs: [0, 0] }))],
    ['a text that is not there', withBody((body) => ({ ...body, blobs: [9, 0, 0, 60] }))],
    ['a negative length', withBody((body) => ({ ...body, blobs: [0, 0, 0, 61, 0, 0, 0, -1] }))],
    ['an empty line', withBody((body) => ({ ...body, blobs: [0, 0, 0, 60, 0, 0, 0, 0] }))],
    ['names that are no texts', withBody((body) => ({ ...body, names: ['', 5, 6] }))],
    ['no empty name', withBody((body) => ({ ...body, names: ['a', 'b', 'c'] }))],
  ])('refuses %s', (_what, text) => {
    expect(() => parseContentIndex(text)).toThrow(/^index: (damaged|unsupported version)$/);
  });
});
