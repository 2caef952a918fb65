import { describe, expect, it } from 'vitest';
import { encodeGoJson } from '../../../src/document/go-json.js';
import { RawJson } from '../../../src/document/json.js';
import type { BundleBlob } from '../../../src/model/declarative-config.js';
import { migrateBundle, migrationLevels, resolveMigrationLevel } from '../../../src/model/migrations.js';

function object(manifest: string) {
  return { type: 'olm.bundle.object', value: { data: Buffer.from(manifest).toString('base64') } };
}

const csv = '{"kind":"ClusterServiceVersion","spec":{"displayName":"Foo","version":"1.2.3"}}';

function bundle(properties: BundleBlob['properties'], image = 'img'): BundleBlob {
  return { schema: 'olm.bundle', name: 'foo.v1', package: 'foo', image, properties, relatedImages: [] };
}

function types(blob: BundleBlob): string[] {
  return blob.properties.map(({ type }) => type);
}

describe('model/migrations', () => {
  it('lists its levels', () => {
    expect(migrationLevels).toEqual(['none', 'bundle-object-to-csv-metadata', 'all']);
    expect(resolveMigrationLevel('')).toBe('none');
    expect(() => resolveMigrationLevel('nope')).toThrow('unknown migration level "nope"');
  });

  it('replaces objects by metadata of the first CSV among them', () => {
    const before = bundle([
      object('{"kind":"Other"}'),
      object('{broken'),
      object(csv),
      { type: 'x', value: 1 },
    ]);
    for (const level of ['all', 'bundle-object-to-csv-metadata']) {
      const after = migrateBundle(before, level);
      expect(types(after)).toEqual(['x', 'olm.csv.metadata']);
      expect(encodeGoJson(after.properties[1]?.value ?? null)).toContain('"displayName":"Foo"');
    }
    expect(types(before)).toHaveLength(4);
    expect(migrateBundle(before, 'none')).toBe(before);
    expect(migrateBundle(before, '')).toBe(before);
  });

  it('reads objects in YAML, values kept as text, and keys in any case', () => {
    const yaml = object('kind: ClusterServiceVersion\nspec: {displayName: Bar}\n');
    const raw = { type: yaml.type, value: new RawJson(JSON.stringify(yaml.value)) };
    const folded = { type: yaml.type, value: { DATA: yaml.value.data } };
    for (const property of [yaml, raw, folded]) {
      const after = migrateBundle(bundle([property]), 'all');
      expect(encodeGoJson(after.properties[0]?.value ?? null)).toContain('"displayName":"Bar"');
    }
  });

  it('keeps a bundle without image, without CSV, or with metadata', () => {
    const metadata = { type: 'olm.csv.metadata', value: {} };
    for (const blob of [
      bundle([object(csv)], ''),
      bundle([object('{}')]),
      bundle([object(csv), metadata]),
      bundle([]),
    ]) {
      expect(migrateBundle(blob, 'all')).toBe(blob);
    }
  });

  it('uses the CSV of the caller', () => {
    expect(types(migrateBundle(bundle([]), 'all', csv))).toEqual(['olm.csv.metadata']);
  });

  it('names the bundle and the field of a CSV that has the wrong types', () => {
    const broken = '{"kind":"ClusterServiceVersion","spec":{"displayName":1}}';
    expect(() => migrateBundle(bundle([object(broken)]), 'all')).toThrow(
      'bundle "foo.v1": ClusterServiceVersion: spec.displayName: expected a string, got the number 1',
    );
  });
});
