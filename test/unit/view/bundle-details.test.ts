import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type JsonObject, type JsonValue, isJsonObject } from '../../../src/document/json.js';
import { decodeBundle, decodePackage } from '../../../src/model/decode.js';
import { readBundleDetails, readBundleHeading } from '../../../src/view/bundle-details.js';
import { readIcon, summarizeText } from '../../../src/view/package-heading.js';

function blob(properties: { type: string; value: JsonValue }[]): ReturnType<typeof decodeBundle> {
  return decodeBundle({ schema: 'olm.bundle', package: 'a', name: 'a.v1', image: 'r.test/a:1', properties });
}

function object(manifest: JsonObject): { type: string; value: JsonValue } {
  const data = Buffer.from(JSON.stringify(manifest)).toString('base64');
  return { type: 'olm.bundle.object', value: { data } };
}

const csv = {
  apiVersion: 'operators.coreos.com/v1alpha1',
  kind: 'ClusterServiceVersion',
  metadata: { name: 'a.v1', annotations: { description: 'short', capabilities: 'Basic Install' } },
  spec: {
    displayName: 'A',
    provider: { name: 'Acme' },
    customresourcedefinitions: {
      owned: [{ name: 'as.example.test', version: 'v1', kind: 'A', displayName: 'An A' }],
    },
    installModes: [{ type: 'OwnNamespace', supported: false }],
    install: {
      strategy: 'deployment',
      spec: {
        deployments: [{ name: 'manager' }],
        clusterPermissions: [
          { serviceAccountName: 'sa', rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['*'] }] },
        ],
        permissions: [{ serviceAccountName: 'sa', rules: [{ nonResourceURLs: ['/x'], verbs: ['get'] }] }],
      },
    },
  },
};

describe('readBundleDetails', () => {
  it('reads the ClusterServiceVersion if the catalog contains it', () => {
    const details = readBundleDetails(
      blob([
        { type: 'olm.gvk', value: { group: 'example.test', version: 'v1', kind: 'A' } },
        { type: 'olm.gvk', value: { group: 'example.test', version: 'v2', kind: 'A' } },
        object(csv),
        object({ kind: 'Service', apiVersion: 'v1' }),
      ]),
    );
    expect(details).toMatchObject({
      displayName: 'A',
      provider: 'Acme',
      summary: 'short',
      facts: [{ name: 'Capabilities', value: 'Basic Install' }],
      installModes: [{ type: 'OwnNamespace', isSupported: false }],
      deployments: ['manager'],
      manifests: [
        { kind: 'ClusterServiceVersion', count: 1 },
        { kind: 'Service', count: 1 },
      ],
    });
    expect(details.provided.map(({ version, displayName }) => [version, displayName])).toEqual([
      ['v1', 'An A'],
      ['v2', ''],
    ]);
    expect(details.permissions).toEqual([
      {
        account: 'sa',
        isClusterWide: true,
        groups: [''],
        resources: ['pods'],
        names: [],
        urls: [],
        verbs: ['*'],
      },
      {
        account: 'sa',
        isClusterWide: false,
        groups: [],
        resources: [],
        names: [],
        urls: ['/x'],
        verbs: ['get'],
      },
    ]);
  });

  it('reads the metadata otherwise, without permissions', () => {
    const details = readBundleDetails(
      blob([
        { type: 'olm.csv.metadata', value: { displayName: 'M', annotations: { categories: 'Database' } } },
      ]),
    );
    expect(details.displayName).toBe('M');
    expect(details.facts).toEqual([{ name: 'Categories', value: 'Database' }]);
    expect(details.permissions).toBeUndefined();
  });

  it('omits values of a wrong type', () => {
    const spec = fc.dictionary(fc.constantFrom(...Object.keys(csv.spec)), fc.jsonValue({ maxDepth: 4 }));
    fc.assert(
      fc.property(spec, fc.jsonValue(), (changed, value) => {
        const manifest = { ...csv, spec: { ...csv.spec, ...changed } } as unknown as JsonObject;
        const bundle = blob([
          object(manifest),
          ...['olm.gvk', 'olm.csv.metadata', 'olm.package.required', 'olm.constraint'].map((type) => ({
            type,
            value: value as JsonValue,
          })),
        ]);
        expect(isJsonObject(readBundleDetails(bundle))).toBe(true);
        expect(isJsonObject(readBundleHeading(bundle))).toBe(true);
      }),
    );
  });
});

describe('readIcon', () => {
  const icon = (mediatype: string, base64data = 'AAAA') =>
    readIcon(decodePackage({ schema: 'olm.package', name: 'a', icon: { base64data, mediatype } }));

  it('returns images of supported types only', () => {
    expect(icon('image/PNG')).toEqual({ mediaType: 'image/png', content: Buffer.alloc(3) });
    for (const type of ['text/html', 'image/svg+xml; a=b', 'application/xhtml+xml', '']) {
      expect(icon(type)).toBeUndefined();
    }
    expect(icon('image/png', '')).toBeUndefined();
    expect(icon('image/png', 'A'.repeat(4 * 1024 * 1024))).toBeUndefined();
  });
});

describe('summarizeText', () => {
  it('returns the first text with content, without Markdown', () => {
    expect(summarizeText([undefined, '# Title\n', '## T\n\nDoes **this** and [that](https://a.test).'])).toBe(
      'Does this and that.',
    );
    expect(summarizeText(['word '.repeat(100)])).toMatch(/^(word ){34,36}word…$/);
    expect(summarizeText([])).toBe('');
  });
});
