import { describe, expect, it } from 'vitest';
import { findPresentOwner } from '../../../src/cluster/live.js';

describe('findPresentOwner', () => {
  it('names all ClusterServiceVersions of an object that an upgrade has left to both', () => {
    const reference = (name: string): object => ({ kind: 'ClusterServiceVersion', name });
    const object = {
      metadata: {
        name: 'manager',
        namespace: 'demo',
        ownerReferences: [reference('demo.v1.0.0'), reference('demo.v1.1.0')] as never,
      },
    };
    expect(findPresentOwner(object)).toEqual({
      kind: 'olm',
      name: 'demo/demo.v1.0.0',
      further: ['demo/demo.v1.1.0'],
    });
  });
});
