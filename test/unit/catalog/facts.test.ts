import { describe, expect, it } from 'vitest';
import { findCsvDisplayName } from '../../../src/catalog/facts.js';
import type { JsonObject } from '../../../src/document/json.js';
import { decodeBundle } from '../../../src/model/decode.js';

/** Returns the display name of a bundle whose ClusterServiceVersion has these fields. */
function findName(spec: JsonObject, changes: JsonObject = {}): string | undefined {
  const csv = {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    spec,
    ...changes,
  };
  const data = Buffer.from(JSON.stringify(csv)).toString('base64');
  const properties = [{ type: 'olm.bundle.object', value: { data } }];
  const value = { schema: 'olm.bundle', name: 'a.v1', package: 'a', image: 'a', properties };
  return findCsvDisplayName(decodeBundle(value));
}

describe('findCsvDisplayName', () => {
  it('reads the name as opm does, in any case', () => {
    expect(findName({ displayName: 'Foo' })).toBe('Foo');
    expect(findName({ displayname: 'Foo', unknown: { a: [1] } }, { status: null })).toBe('Foo');
  });

  it.each<[JsonObject, JsonObject?]>([
    [{ displayName: 'Foo', version: '1.x' }],
    [{ displayName: 'Foo', minKubeVersion: 1.2 }],
    [{ displayName: 'Foo', icon: 'x' }],
    [{ displayName: 'Foo', installModes: [{ type: 'OwnNamespace', supported: 'true' }] }],
    [{ displayName: 'Foo', install: { spec: { deployments: [{ spec: { replicas: '1' } }] } } }],
    [{ displayName: 'Foo' }, { metadata: { name: 1 } }],
    [{ displayName: 'Foo' }, { metadata: { creationTimestamp: 'x' } }],
  ])('finds none where Go cannot decode %j %j', (spec, changes) => {
    expect(findName(spec, changes)).toBeUndefined();
  });
});
