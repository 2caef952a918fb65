import { describe, expect, it } from 'vitest';
import { describeBundle } from '../../../src/model/describe.js';
import { decodeBundle } from '../../../src/model/decode.js';
import { bundle, factsOf } from './read-facts.js';

describe('model/describe', () => {
  it('keeps names, version, counts and faults of a bundle', () => {
    const properties = [
      { type: 'olm.gvk', value: 'x' },
      { type: 'olm.package', value: { packageName: 'other', version: '1.0.0', release: '2' } },
      { type: 'olm.bundle.object', value: { data: 'e30=' } },
      { type: 'olm.bundle.object', value: { data: 'e30=' } },
      { type: 'custom' },
    ];
    const relatedImages = [{ image: 'x.test/a:1' }, { image: '' }, { image: 'a b' }];
    const blob = bundle('a.v1.0.0', '', { image: 'Upper', properties, relatedImages });
    const origin = { file: 'f', offset: 7, length: 9, syntax: 'yaml' } as const;
    expect(describeBundle(decodeBundle(blob as never), origin)).toEqual({
      package: 'p',
      name: 'a.v1.0.0',
      image: 'Upper',
      objectCount: 2,
      packageProperties: [{ packageName: 'other', version: '1.0.0', release: '2', index: 1 }],
      propertyFaults: [
        {
          severity: 'error',
          code: 'invalid-property',
          subject: 'parse property[0] of type "olm.gvk"',
          problem: 'json: cannot unmarshal string into Go value of type property.GVK',
          path: ['properties', 0, 'value'],
        },
        {
          severity: 'error',
          code: 'invalid-property',
          subject: 'parse property[4] of type "custom"',
          problem: 'unexpected end of JSON input',
          path: ['properties', 4, 'value'],
        },
      ],
      imageFaults: [
        {
          severity: 'error',
          code: 'invalid-image',
          subject: 'invalid image pull spec "Upper"',
          problem: 'invalid reference format: repository name must be lowercase',
          path: ['image'],
        },
        {
          severity: 'error',
          code: 'invalid-image',
          subject: 'invalid image pull spec "a b"',
          problem: 'invalid reference format',
          path: ['relatedImages', 2, 'image'],
        },
      ],
      origin,
    });
  });

  it('reads missing lists as empty', () => {
    const facts = factsOf([
      { schema: 'olm.channel', name: 'c', package: 'p' },
      { schema: 'olm.deprecations', package: 'p', entries: null },
    ]);
    expect(facts.channels[0]?.entries).toEqual([]);
    expect(facts.deprecations[0]?.entries).toEqual([]);
  });

  it('keeps characters of every kind', () => {
    const name = 'größe.\u{1f600}.v1.0.0-long-enough-to-copy';
    expect(factsOf([bundle(name, '1.0.0')]).bundles[0]?.name).toBe(name);
  });
});
