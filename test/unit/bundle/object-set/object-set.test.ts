import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createObjectSet, encodeObjectSet } from '../../../../src/bundle/object-set/object-set.js';
import { packObjectSet } from '../../../../src/bundle/object-set/pack.js';
import { getObjects, getText, getValue } from '../../../../src/document/json-fields.js';
import type { JsonObject } from '../../../../src/document/json.js';
import { generated } from '../../../../src/kube/object.js';

const bundle = { name: 'foo.v1.2.3', package: 'foo', version: '1.2.3', image: 'registry.test/foo@sha256:1' };

function setOf(objects: readonly JsonObject[], owner = { name: 'ext', uid: 'u' }) {
  return createObjectSet(
    objects.map((object) => generated(object, 'test')),
    { owner, bundle, revision: 2 },
  );
}

function configMap(name: string, value: string): JsonObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'ns' }, data: { value } };
}

describe('a ClusterObjectSet', () => {
  it('holds objects with labels of the extension and without status and other metadata', () => {
    const service: JsonObject = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name: 's',
        namespace: 'ns',
        creationTimestamp: null,
        labels: { 'olm.operatorframework.io/owner-name': 'other', app: 'a' },
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', note: 'n' },
      },
      status: { loadBalancer: {} },
    };
    const set = encodeObjectSet(setOf([service]));
    expect(getText(set, 'metadata', 'name')).toBe('ext-2');
    expect(getValue(set, 'spec', 'phases')).toEqual([
      {
        name: 'infrastructure',
        objects: [
          {
            object: {
              apiVersion: 'v1',
              kind: 'Service',
              metadata: {
                name: 's',
                namespace: 'ns',
                labels: {
                  app: 'a',
                  'olm.operatorframework.io/owner-kind': 'ClusterExtension',
                  'olm.operatorframework.io/owner-name': 'ext',
                },
                annotations: {
                  note: 'n',
                  'olm.operatorframework.io/bundle-version': '1.2.3',
                  'olm.operatorframework.io/package-name': 'foo',
                },
              },
            },
          },
        ],
      },
    ]);
  });

  it('is packed into immutable Secrets that are closed before they exceed 900 KiB', () => {
    const large = 'x'.repeat(500 * 1024);
    const { set, secrets } = packObjectSet(setOf([configMap('a', large), configMap('b', large)]), 'system');
    expect(secrets.map((secret) => getValue(secret, 'immutable'))).toEqual([true, true]);
    const [phase] = getObjects(set, 'spec', 'phases');
    const references = getObjects(phase, 'objects').map(({ ref }) => ref as JsonObject);
    expect(references.map((reference) => getText(reference, 'name'))).toEqual(
      secrets.map((secret) => getText(secret, 'metadata', 'name')),
    );
    const [first] = references;
    const data = Buffer.from(getText(secrets[0], 'data', getText(first, 'key')), 'base64');
    expect(createHash('sha256').update(data).digest('base64url')).toBe(getText(first, 'key'));
    expect(JSON.parse(data.toString())).toMatchObject({ metadata: { name: 'a' } });
  });

  it('is packed with objects of more than 900 KiB compressed', () => {
    const { secrets } = packObjectSet(setOf([configMap('a', 'x'.repeat(2 * 1024 * 1024))]), 'system');
    const [data] = Object.values(getValue(secrets[0], 'data') as JsonObject);
    const text = gunzipSync(Buffer.from(data as string, 'base64')).toString();
    expect(JSON.parse(text)).toMatchObject({ kind: 'ConfigMap', metadata: { name: 'a' } });
  });

  it('refuses an object that exceeds 900 KiB compressed', () => {
    const noise = Array.from({ length: 40_000 }, (_, i) =>
      createHash('sha256').update(String(i)).digest('base64'),
    ).join('');
    expect(() => packObjectSet(setOf([configMap('a', noise)]), 'system')).toThrow(
      /ConfigMap a: has \d+ bytes compressed, maximum is 921600/,
    );
  });
});
