import { load, loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import {
  encodeCatalogSource,
  encodeClusterCatalog,
  encodeMirrorSets,
  getObjectName,
} from '../../../src/mirror/cluster-manifests.js';

/** What the published definitions ask of each `source` and mirror. */
const mirrorPattern =
  /^((?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))+)?(?::[0-9]+)?)(?:(?:\/[a-z0-9]+(?:(?:(?:[._]|__|[-]*)[a-z0-9]+)+)?)+)?$/;

interface MirrorSet {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  spec: Record<string, { mirrors: string[]; source: string }[]>;
}

const entries = [
  { source: 'quay.io/b/app', mirrors: ['reg.example:5000/b-app'] },
  { source: 'quay.io/a/app', mirrors: ['reg.example:5000/a-app'] },
];

describe('mirror/cluster-manifests', () => {
  it('writes a mirror set sorted by source', () => {
    const labels = { 'operators.openshift.org/catalog': 'true' };
    expect(encodeMirrorSets('ImageDigestMirrorSet', entries, { name: 'dev', labels })).toBe(`---
apiVersion: config.openshift.io/v1
kind: ImageDigestMirrorSet
metadata:
  labels:
    operators.openshift.org/catalog: "true"
  name: dev-0
spec:
  imageDigestMirrors:
  - mirrors:
    - reg.example:5000/a-app
    source: quay.io/a/app
  - mirrors:
    - reg.example:5000/b-app
    source: quay.io/b/app
`);
  });

  it.each([
    ['ImageContentSourcePolicy', 'operator.openshift.io/v1alpha1', 'repositoryDigestMirrors'],
    ['ImageDigestMirrorSet', 'config.openshift.io/v1', 'imageDigestMirrors'],
    ['ImageTagMirrorSet', 'config.openshift.io/v1', 'imageTagMirrors'],
  ] as const)('gives %s the fields that its definition requires', (kind, apiVersion, list) => {
    const document = load(encodeMirrorSets(kind, entries, { name: 'x' })) as MirrorSet;
    expect(document).toMatchObject({ apiVersion, kind, metadata: { name: 'x-0' } });
    expect(Object.keys(document.spec)).toEqual([list]);
    for (const { source, mirrors } of document.spec[list] ?? [])
      for (const text of [source, ...mirrors]) expect(text).toMatch(mirrorPattern);
  });

  it('begins a new document where one would become too large', () => {
    const many = Array.from({ length: 200 }, (_, i) => ({
      source: `quay.io/acme/app${i}`,
      mirrors: [`reg.example/acme/app${i}`],
    }));
    const text = encodeMirrorSets('ImageContentSourcePolicy', many, { name: 'dev', maxBytes: 2000 });
    const documents = text.split(/^(?=---\n)/m);
    for (const document of documents) expect(Buffer.byteLength(document)).toBeLessThanOrEqual(2000);
    // Full, too: none could hold what the next begins with.
    for (const document of documents.slice(0, -1)) expect(Buffer.byteLength(document)).toBeGreaterThan(1900);
    const sets = loadAll(text) as MirrorSet[];
    expect(sets.map(({ metadata }) => metadata.name)).toEqual(sets.map((_, i) => `dev-${i}`));
    expect(sets.flatMap(({ spec }) => spec['repositoryDigestMirrors'])).toHaveLength(200);
  });

  it('writes nothing where there are no entries, and refuses one that is too large', () => {
    expect(encodeMirrorSets('ImageDigestMirrorSet', [], { name: 'dev' })).toBe('');
    const make = () => encodeMirrorSets('ImageDigestMirrorSet', entries, { name: 'dev', maxBytes: 100 });
    expect(make).toThrow('ImageDigestMirrorSet dev: the entry of quay.io/a/app alone is above 100 bytes');
  });

  it('makes one entry of those of one source', () => {
    const twice = [
      { source: 'a.io', mirrors: ['m', 'n'] },
      { source: 'a.io', mirrors: ['o', 'm'] },
    ];
    const set = load(encodeMirrorSets('ImageTagMirrorSet', twice, { name: 'x' })) as MirrorSet;
    expect(set.spec['imageTagMirrors']).toEqual([{ source: 'a.io', mirrors: ['m', 'n', 'o'] }]);
  });

  it('writes a CatalogSource', () => {
    expect(encodeCatalogSource({ name: 'dev', image: 'reg.example/dev:v1' })).toBe(
      `apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata:
  name: dev
  namespace: openshift-marketplace
spec:
  image: reg.example/dev:v1
  sourceType: grpc
`,
    );
    const polled = encodeCatalogSource({
      name: 'dev',
      image: 'i:1',
      namespace: 'olm',
      pollInterval: '30m',
      annotations: { createdBy: 'x' },
    });
    expect(load(polled)).toMatchObject({
      metadata: { namespace: 'olm', annotations: { createdBy: 'x' } },
      spec: { updateStrategy: { registryPoll: { interval: '30m' } } },
    });
  });

  it('writes a ClusterCatalog', () => {
    expect(encodeClusterCatalog({ name: 'cc-dev', image: 'reg.example/dev:v1', pollIntervalMinutes: 10 }))
      .toBe(`apiVersion: olm.operatorframework.io/v1
kind: ClusterCatalog
metadata:
  name: cc-dev
spec:
  priority: 0
  source:
    image:
      pollIntervalMinutes: 10
      ref: reg.example/dev:v1
    type: Image
`);
  });

  it.each([
    ['dev', 'dev'],
    ['a/b_c', 'a-b-c'],
    ['Dev.Index', 'dev.index'],
    ['_x_', 'x'],
    ['a..b', 'a.b'],
    ['v4.18', 'v4.18'],
    ['a._b', 'a.b'],
    ['___', 'catalog'],
    ['x'.repeat(300), 'x'.repeat(240)],
  ])('makes of %s a name that a cluster takes', (text, name) => expect(getObjectName(text)).toBe(name));
});
