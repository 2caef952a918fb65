import { describe, expect, it } from 'vitest';
import { encodeGoJson } from '../../../src/document/go-json.js';
import type { JsonObject } from '../../../src/document/json.js';
import { buildCsvMetadata } from '../../../src/model/csv-metadata.js';

function built(csv: JsonObject, options = {}): string {
  return encodeGoJson(buildCsvMetadata(csv, options));
}

const always = { apiServiceDefinitions: {}, crdDescriptions: {}, provider: {} };

describe('model/csv-metadata', () => {
  it('always has three fields, and no other empty ones', () => {
    expect(built({})).toBe(JSON.stringify(always));
    expect(
      built({
        metadata: { annotations: {}, labels: null },
        spec: { description: '', keywords: [], links: null, installModes: [], icon: [], unknown: 1 },
      }),
    ).toBe(JSON.stringify(always));
  });

  it('has its fields in the order of opm', () => {
    const descriptor = {
      value: { b: 1, a: '<' },
      'x-descriptors': ['x'],
      description: 'd',
      displayName: 'n',
      path: 'p',
    };
    const text = built({
      metadata: { labels: { b: '2', a: '1' }, annotations: { z: '<', 'a-b': '' } },
      spec: {
        provider: { url: 'u', name: 'n' },
        nativeAPIs: [{ kind: 'k', group: 'g' }],
        minKubeVersion: '1.2.3',
        maturity: 'alpha',
        maintainers: [{ email: 'e', name: 'n' }, {}],
        links: [{ url: 'u' }],
        keywords: ['k'],
        installModes: [{ supported: false, type: 'OwnNamespace' }],
        displayName: 'd',
        description: 'd & d',
        customresourcedefinitions: {
          required: [],
          owned: [
            {
              actionDescriptors: [{ path: 'a', value: null }],
              specDescriptors: [descriptor],
              statusDescriptors: [],
              resources: [{ kind: 'Pod' }],
              description: '',
              kind: 'Foo',
              name: 'foos.example.com',
            },
          ],
        },
        apiservicedefinitions: {
          required: [{ containerPort: 5443, deploymentName: 'd', name: 'n', version: 'v1' }],
        },
      },
    });
    expect(text).toBe(
      '{"annotations":{"a-b":"","z":"<"},' +
        '"apiServiceDefinitions":{"required":[{"name":"n","group":"","version":"v1","kind":"",' +
        '"deploymentName":"d","containerPort":5443}]},' +
        '"crdDescriptions":{"owned":[{"name":"foos.example.com","version":"","kind":"Foo",' +
        '"resources":[{"name":"","kind":"Pod","version":""}],' +
        '"specDescriptors":[{"path":"p","displayName":"n","description":"d","x-descriptors":["x"],' +
        '"value":{"b":1,"a":"\\u003c"}}],' +
        '"actionDescriptors":[{"path":"a","value":null}]}]},' +
        '"description":"d & d","displayName":"d",' +
        '"installModes":[{"type":"OwnNamespace","supported":false}],' +
        '"keywords":["k"],"labels":{"a":"1","b":"2"},"links":[{"url":"u"}],' +
        '"maintainers":[{"name":"n","email":"e"},{}],"maturity":"alpha","minKubeVersion":"1.2.3",' +
        '"nativeAPIs":[{"group":"g","version":"","kind":"k"}],"provider":{"name":"n","url":"u"}}',
    );
  });

  it('keeps free-form values unescaped', () => {
    const spec = { customresourcedefinitions: { owned: [{ specDescriptors: [{ value: '<' }] }] } };
    expect(built({ spec }, { escapeHtml: false })).toContain('"value":"<"');
  });

  it('matches field names in any case; the last of two takes precedence', () => {
    const text = built({
      Metadata: { Labels: { a: 'b' } },
      spec: { DisplayName: 'one', displayname: 'two' },
    });
    expect(text).toContain('"displayName":"two"');
    expect(text).toContain('"labels":{"a":"b"}');
  });

  it.each<[string, JsonObject]>([
    ['spec.description: expected a string, got the number 1', { description: 1 }],
    ['spec.keywords[1]: expected a string, got a list', { keywords: ['a', []] }],
    [
      'spec.installModes[0].supported: expected true or false, got a string',
      { installModes: [{ supported: 'x' }] },
    ],
    ['spec.links: expected a list, got an object', { links: {} }],
    ['spec.provider: expected an object, got a string', { provider: 'x' }],
    [
      'spec.webhookdefinitions[0].containerPort: expected a 32-bit integer',
      { webhookdefinitions: [{ containerPort: 1.5 }] },
    ],
    ['spec.release: "01" is not a release identifier', { release: '1.01' }],
    ['spec.version: ', { version: 'x.y.z' }],
    ['spec.version: expected a string with a version', { version: 1 }],
  ])('refuses %s', (message, spec) => {
    expect(() => buildCsvMetadata({ spec })).toThrow(message);
  });

  it('accepts partial versions, as opm does', () => {
    expect(built({ spec: { version: 'v1.2', release: '1.a-b' } })).toBe(JSON.stringify(always));
  });
});
