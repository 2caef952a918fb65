import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { type BundleFiles, readBundleDirectory } from '../../../src/bundle/read.js';
import { type BundleSummary, summarizeBundle } from '../../../src/bundle/summary.js';
import { bundlesDirectory } from '../../support/command-line.js';
import { type SmallBundle, smallBundle } from '../../support/small-bundle.js';

function filesOf(texts: Record<string, string>): BundleFiles {
  const files: BundleFiles = { manifests: [], metadata: [] };
  for (const [name, text] of Object.entries(texts)) {
    const [part, base] = name.split('/') as ['manifests' | 'metadata', string];
    files[part].push({ name: base, content: Buffer.from(text) });
  }
  return files;
}

function summarize(bundle: SmallBundle = {}, more: Record<string, string> = {}): BundleSummary {
  return summarizeBundle(filesOf({ ...smallBundle(bundle), ...more }), { subject: 'widget' });
}

const rule = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] };
const account = (serviceAccountName: string, ...rules: object[]): object => ({ serviceAccountName, rules });
const deployment = (image: string): object => ({
  name: 'widget-controller',
  spec: {
    selector: { matchLabels: { app: 'widget' } },
    template: {
      metadata: { labels: { app: 'widget' } },
      spec: { containers: [{ name: 'c', image }], serviceAccountName: 'widget' },
    },
  },
});
const digest = `@sha256:${'a'.repeat(64)}`;

function specOf(modes: string[], strategy: object = {}): object {
  return {
    installModes: modes.map((type) => ({ type, supported: true })),
    install: { strategy: 'deployment', spec: { deployments: [], ...strategy } },
  };
}

describe('bundle/summary', () => {
  it('summarizes a bundle', async () => {
    const directory = path.join(bundlesDirectory, 'silicom-sts-operator/0.0.1');
    const summary = summarizeBundle(await readBundleDirectory(directory), { subject: directory });
    expect(summary).toMatchObject({
      name: 'silicom-sts-operator.v0.0.1',
      package: 'silicom-sts-operator',
      version: '0.0.1',
      channels: ['alpha'],
      installModes: ['AllNamespaces'],
      provider: 'Silicom Ltd.',
      maintainers: [{ name: 'Ryan M. Raasch', email: 'rmr@silicom.dk' }],
      dependencies: [
        { type: 'olm.package', value: { packageName: 'special-resource-operator', version: '<=4.9.0' } },
        {
          type: 'olm.gvk',
          value: { group: 'sro.openshift.io', kind: 'SpecialResource', version: 'v1beta1' },
        },
      ],
      sizes: { manifests: { files: 14 } },
    });
    expect(summary.apis.owned.map(({ kind, type }) => `${kind} ${type}`)).toEqual([
      'StsConfig resource',
      'StsNode resource',
      'StsOperatorConfig resource',
    ]);
    expect(summary.permissions?.risks).toEqual(['wildcard', 'escalate', 'workloads', 'scc']);
  });

  it('reads upgrades and further facts of the ClusterServiceVersion', () => {
    const summary = summarize(
      {
        replaces: 'widget.v0.9.0',
        annotations: {
          'olm.skipRange': '<1.0.0',
          'olm.substitutesFor': 'widget.v0.8.0',
          'olm.properties':
            '[{"type":"olm.deprecated","value":{}},{"type":"olm.maxOpenShiftVersion","value":"4.18"}]',
        },
        spec: {
          ...specOf(['AllNamespaces']),
          skips: ['widget.v0.9.1'],
          minKubeVersion: '1.20.0',
          displayName: 7,
        },
      },
      {
        'metadata/properties.yaml': 'properties: [{type: olm.constraint, value: {failureMessage: never}}]',
      },
    );
    expect(summary).toMatchObject({
      displayName: '',
      upgrade: {
        replaces: 'widget.v0.9.0',
        skips: ['widget.v0.9.1'],
        skipRange: '<1.0.0',
        substitutesFor: 'widget.v0.8.0',
      },
      minKubeVersion: '1.20.0',
      isDeprecated: true,
      dependencies: [{ type: 'olm.constraint', value: { failureMessage: 'never' } }],
      properties: [{ type: 'olm.maxOpenShiftVersion', value: '4.18' }],
    });
  });

  it('distinguishes images of the operator from others, and unpinned ones', () => {
    const summary = summarize({
      spec: {
        ...specOf(['AllNamespaces'], { deployments: [deployment('quay.io/w/controller:v1')] }),
        relatedImages: [
          { name: 'b', image: `quay.io/w/other${digest}` },
          { name: 'a', image: 'quay.io/w/controller:v1' },
        ],
      },
    });
    expect(summary.images).toEqual([
      { image: 'quay.io/w/controller:v1', names: ['a'], isOperator: true, isPinned: false },
      { image: `quay.io/w/other${digest}`, names: ['b'], isOperator: false, isPinned: true },
    ]);
    expect(summary.deployments).toEqual(['widget-controller']);
    expect(summary.notes.map(({ problem }) => problem)).toContain(
      'runs an image that is not pinned by digest',
    );
  });

  it.each([
    [['AllNamespaces', 'OwnNamespace'], { clusterRights: 3, namespaceRights: 0 }],
    [['OwnNamespace'], { clusterRights: 1, namespaceRights: 1 }],
    [['SingleNamespace'], { clusterRights: 1, namespaceRights: 1 }],
    [['SingleNamespace', 'MultiNamespace'], { clusterRights: 1, namespaceRights: 2 }],
    [['MultiNamespace'], { clusterRights: 1, namespaceRights: 2 }],
  ])('counts permissions as %j gives them', (modes, rights) => {
    const strategy = {
      permissions: [account('widget', rule)],
      clusterPermissions: [account('widget', { apiGroups: ['apps'], resources: ['jobs'], verbs: ['get'] })],
    };
    const { permissions, notes } = summarize({ spec: specOf(modes, strategy) });
    expect(notes).toEqual([]);
    expect(permissions).toEqual({
      accounts: [{ account: 'widget', ...rights, risks: ['secrets'] }],
      risks: ['secrets'],
    });
  });

  it('shows permissions of a bundle that cannot be installed, with the reasons', () => {
    const { permissions, notes } = summarize(
      { spec: specOf(['AllNamespaces'], { permissions: [account('widget', rule)] }) },
      { 'manifests/job.yaml': '{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"}}' },
    );
    expect(permissions?.risks).toEqual(['secrets']);
    expect(notes).toEqual([
      {
        severity: 'error',
        code: 'unsupported-kind',
        subject: 'Job "j"',
        problem: 'bundles must not hold objects of this kind',
        hint: expect.stringMatching(/^use one of ClusterRole, /) as string,
        file: 'manifests/job.yaml',
        line: 1,
        column: 26,
      },
    ]);
  });

  it('reports oddities', () => {
    const name = 'widget.v1.0.0';
    const { notes } = summarize(
      {
        version: '1.0',
        name,
        replaces: name,
        defaultChannel: 'other',
        padding: 1024 * 1024,
        spec: { ...specOf(['AllNamespaces']), skips: [name] },
      },
      { 'manifests/zz.yaml': 'a: [' },
    );
    const odd = notes
      .filter(({ severity }) => severity === 'warning')
      .map(({ file, problem }) => [file, problem]);
    expect(odd).toEqual([
      [undefined, 'version 1.0 is not a semantic version'],
      [undefined, 'default channel other is not among its channels'],
      [undefined, 'replaces itself'],
      [undefined, 'skips itself'],
      [undefined, expect.stringMatching(/^\d+ bytes, more than a ConfigMap holds \(1048576\)$/)],
      ['manifests/zz.yaml', expect.stringMatching(/^skipped: /)],
    ]);
  });

  it('refuses a bundle that cannot be rendered', () => {
    expect(() => summarizeBundle({ manifests: [], metadata: [] }, { subject: 'widget' })).toThrow(
      'widget: no bundle objects found',
    );
  });
});
