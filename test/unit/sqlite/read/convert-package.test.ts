import { describe, expect, it } from 'vitest';
import { convertBundle } from '../../../../src/sqlite/read/convert-package.js';
import type { StoredBundle } from '../../../../src/sqlite/read/queries.js';

const csv =
  '{"kind":"ClusterServiceVersion","spec":{"relatedImages":[{"name":"b","image":"z"},{"image":"a"}]}}';

function stored(more: Partial<StoredBundle> = {}): StoredBundle {
  return {
    id: 1,
    name: 'w.v1.0.0',
    version: '1.0.0',
    skipRange: '',
    image: 'quay.io/w/bundle:1',
    images: [],
    properties: [],
    dependencies: [],
    ...more,
  };
}

function objectsOf(manifests: string | Buffer): string[] {
  const { blob } = convertBundle(stored(), 'w', Buffer.from(manifests));
  return blob.properties
    .filter(({ type }) => type === 'olm.bundle.object')
    .map(({ value }) => Buffer.from((value as { data: string }).data, 'base64').toString('latin1'));
}

describe('sqlite/convert-package', () => {
  it('adds the package of a bundle without one', () => {
    const { blob } = convertBundle(stored(), 'w');
    expect(blob.properties).toEqual([{ type: 'olm.package', value: { packageName: 'w', version: '1.0.0' } }]);
  });

  it('keeps a dependency whose value is NULL, as opm stores one without value', () => {
    const dependencies = [
      { type: 'custom', value: '' },
      { type: 'olm.constraint', value: '{"failureMessage":"x"}' },
    ];
    const { blob, faults } = convertBundle(stored({ dependencies }), 'w');
    expect(faults).toEqual([]);
    expect(blob.properties).toEqual([
      { type: 'custom', value: null },
      { type: 'olm.constraint', value: { failureMessage: 'x' } },
      { type: 'olm.package', value: { packageName: 'w', version: '1.0.0' } },
    ]);
  });

  it('puts images that manifests name before those that only the index knows, in order of the image', () => {
    const { blob } = convertBundle(stored({ images: ['', 'a', 'm', 'z'] }), 'w', Buffer.from(csv));
    expect(blob.relatedImages).toEqual([
      { name: '', image: '' },
      { name: '', image: 'a' },
      { name: '', image: 'm' },
      { name: 'b', image: 'z' },
    ]);
  });

  it.each([
    ['a line each', `${csv}\n{"kind":"A"}\n`],
    ['no last line feed', `${csv}\n{"kind":"A"}`],
    ['one line', `${csv}{"kind":"A"}`],
    ['blank lines', `\n\n${csv}\n\n{"kind":"A"}\n\n`],
    ['blanks around', ` ${csv} \t{"kind":"A"} `],
  ])('tells objects apart: %s', (_what, manifests) => {
    expect(objectsOf(manifests).sort()).toEqual(['{"kind":"A"}', csv].sort());
  });

  it('keeps the bytes of objects, be they text or not', () => {
    const odd = Buffer.from('7b2261223a22ff227d', 'hex');
    expect(objectsOf(Buffer.concat([Buffer.from(`${csv}\n`), odd]))).toContain(odd.toString('latin1'));
    expect(objectsOf(`${csv}\n{"a" :\n "}{"}\n`)).toContain('{"a" :\n "}{"}');
  });

  it.each(['{', '{}}', '}{', 'null', '"', '{"a":1}x', '\0'.repeat(100), '{"kind":"ClusterServiceVersion"'])(
    'refuses the manifests %j',
    (manifests) => {
      expect(() => objectsOf(manifests)).toThrow(/its manifests are not JSON|no csv in bundle/);
      expect(() => objectsOf(`${csv}\n${manifests === 'null' ? '{' : manifests}`)).toThrow(/not JSON/);
    },
  );
});
