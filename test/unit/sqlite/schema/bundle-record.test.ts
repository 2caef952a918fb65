import { describe, expect, it } from 'vitest';
import { parseBundle } from '../../../../src/bundle/parse.js';
import { readBundleDirectory } from '../../../../src/bundle/read.js';
import { toBundleRecord } from '../../../../src/sqlite/schema/bundle-record.js';
import { insertBundle } from '../../../../src/sqlite/schema/insert-bundle.js';
import { emptyIndex } from '../../../support/staged-bundles.js';
import { directoryWith } from '../../../support/temporary.js';

interface Parts {
  metadata?: Record<string, unknown>;
  spec?: Record<string, unknown>;
  files?: Record<string, string>;
}

const prefix = 'operators.operatorframework.io.bundle';

async function record({ metadata = {}, spec = {}, files = {} }: Parts, image = 'quay.io/p:v1') {
  const csv = {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    metadata: { name: 'p.v1.0.0', ...metadata },
    spec: { version: '1.0.0', ...spec },
  };
  const directory = await directoryWith({
    'manifests/csv.json': JSON.stringify(csv),
    'metadata/annotations.yaml': `annotations: {${prefix}.package.v1: p, ${prefix}.channels.v1: "a,b,a", ${prefix}.channel.default.v1: a}`,
    ...files,
  });
  return toBundleRecord(parseBundle(await readBundleDirectory(directory), { subject: 'p' }), image, 'ref');
}

const crd = JSON.stringify({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'foos.g.io' },
  spec: { group: 'g.io', names: { kind: 'Foo', plural: 'foos' }, versions: [{ name: 'v1' }, { name: 'v2' }] },
});

describe('sqlite/bundle-record, insert-bundle', () => {
  it('takes edges, annotations and images from the ClusterServiceVersion', async () => {
    const { record: found, manifests } = await record({
      metadata: { annotations: { 'olm.skipRange': '<1.0.0', 'olm.substitutesFor': 'p.v0' } },
      spec: {
        replaces: 'p.v0.9.0',
        skips: ['p.v0.9.1', 'p.v0.9.2'],
        relatedImages: [{ name: 'x', image: 'quay.io/x' }, { name: 'y' }],
        install: {
          strategy: 'deployment',
          spec: {
            deployments: [{ spec: { template: { spec: { containers: [{ image: 'quay.io/c' }] } } } }],
          },
        },
        description: '<b>',
      },
    });
    expect(found).toMatchObject({
      channels: ['a', 'b'],
      skipRange: '<1.0.0',
      substitutesFor: 'p.v0',
      replaces: 'p.v0.9.0',
      skips: ['p.v0.9.1', 'p.v0.9.2'],
      relatedImages: ['', 'quay.io/c', 'quay.io/p:v1', 'quay.io/x'],
    });
    expect(manifests.csv.toString()).toContain('"description":"\\u003cb\\u003e"');
    expect(manifests.csv.toString()).toMatch(/\}\n$/);
    expect(manifests.objects).toEqual(manifests.csv);
  });

  it('keeps the key order of properties, and JSON dependencies as they were written', async () => {
    const { record: found } = await record({
      metadata: { annotations: { 'olm.properties': '[{"type":"t","value": {"b": 1, "a": "&"}}]' } },
      spec: { apiservicedefinitions: { required: [{ group: 'r', version: 'v1', kind: 'R', name: 'rs' }] } },
      files: {
        'manifests/crd.json': crd,
        'metadata/dependencies.json':
          '{"dependencies":[{"type":"olm.label","value":{"label":  "x & y"}},{"type":"none"}]}',
        'metadata/properties.yaml': 'properties:\n- {type: t, value: {b: 1, a: "&"}}\n',
      },
    });
    expect(found.dependencies).toEqual([
      { type: 'olm.label', value: '{"label":  "x & y"}' },
      { type: 'none', value: 'null' },
      { type: 'olm.gvk', value: '{"group":"r","kind":"R","version":"v1"}' },
    ]);
    expect(found.properties).toEqual([
      { type: 't', value: '{"a":"\\u0026","b":1}' },
      { type: 'olm.package', value: '{"packageName":"p","version":"1.0.0"}' },
      { type: 't', value: '{"b":1,"a":"\\u0026"}' },
      { type: 'olm.gvk', value: '{"group":"g.io","kind":"Foo","version":"v1"}' },
      { type: 'olm.gvk', value: '{"group":"g.io","kind":"Foo","version":"v2"}' },
    ]);
  });

  it.each([
    [{ spec: { replaces: 1 } }, 'ref: p.v1.0.0: spec.replaces: expected a string, got the number 1'],
    [{ spec: { skips: 'x' } }, 'ref: p.v1.0.0: spec.skips: expected a list, got a string'],
    [{ metadata: { name: '' } }, 'ref: csv name not found'],
    [
      { metadata: { annotations: { 'olm.properties': '{' } } },
      'ref: p.v1.0.0: failed to add properties: annotation olm.properties: unexpected end of JSON input',
    ],
    [
      { metadata: { annotations: { 'olm.properties': '[{"type":"olm.label","value":3}]' } } },
      'ref: p.v1.0.0: failed to add properties: annotation olm.properties: list[0].value: expected an object, got the number 3',
    ],
  ])('refuses %j', async (parts: Parts, message) => {
    await expect(record(parts)).rejects.toMatchObject({ code: 'INVALID', message });
  });

  it('stores manifests and dependencies as bytes, and empty versions and images of what hangs on a bundle as null', async () => {
    const database = await emptyIndex();
    const { record: found, manifests } = await record(
      { spec: { version: '', customresourcedefinitions: {} }, files: { 'manifests/crd.json': crd } },
      '',
    );
    database.run('INSERT INTO deprecated VALUES (?)', found.name);
    const dependencies = [{ type: 'olm.gvk', value: '{}' }];
    insertBundle(database, { ...found, skips: ['x', 'y'], dependencies }, manifests);
    expect(
      database.get(
        `SELECT name, typeof(csv) AS csv, typeof(bundle) AS bundle, bundlepath, version, replaces, skips, substitutesfor
         FROM operatorbundle`,
      ),
    ).toEqual({
      name: 'p.v1.0.0',
      csv: 'blob',
      bundle: 'blob',
      bundlepath: '',
      version: '',
      replaces: '',
      skips: 'x,y',
      substitutesfor: '',
    });
    expect(database.get('SELECT typeof(value) AS type, operatorbundle_path FROM dependencies')).toEqual({
      type: 'blob',
      operatorbundle_path: null,
    });
    expect(
      database.all('SELECT DISTINCT operatorbundle_version, operatorbundle_path FROM properties'),
    ).toEqual([{ operatorbundle_version: null, operatorbundle_path: null }]);
    expect(database.all("SELECT value FROM properties WHERE type = 'olm.deprecated'")).toEqual([
      { value: '{}' },
    ]);
    expect(database.all('SELECT version, plural FROM api NATURAL JOIN api_provider')).toEqual([
      { version: 'v1', plural: 'foos' },
      { version: 'v2', plural: 'foos' },
    ]);
    expect(() => insertBundle(database, found, manifests)).toThrow(
      'failed to add bundle "p.v1.0.0": a bundle of that name is in the index',
    );
  });
});
