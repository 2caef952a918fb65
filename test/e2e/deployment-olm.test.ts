import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { load, loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { useOperatorRegistry } from '../support/operator-registry.js';

const sandbox = useSandbox();
const registry = useOperatorRegistry(sandbox);

interface KubeObject {
  kind: string;
  metadata: { name: string; namespace?: string };
  spec: { template: { metadata: { annotations: Record<string, string> }; spec: { containers: object[] } } };
}

async function render(documents: readonly object[], ...args: string[]) {
  await sandbox.write({
    'documents.yaml': documents.map((item) => `---\n${JSON.stringify(item)}\n`).join(''),
  });
  const result = await sandbox.run(['deployment', 'render', '-f', 'documents.yaml', ...args]);
  return { ...result, objects: loadAll(result.stdout) as KubeObject[] };
}

const extension = (spec: object = {}, catalog: object = {}): object => ({
  apiVersion: 'olm.operatorframework.io/v1',
  kind: 'ClusterExtension',
  metadata: { name: 'widget' },
  spec: {
    namespace: 'demo',
    source: { sourceType: 'Catalog', catalog: { packageName: 'widget', ...catalog } },
    ...spec,
  },
});

const subscription = (packageName: string, spec: object = {}): object => ({
  apiVersion: 'operators.coreos.com/v1alpha1',
  kind: 'Subscription',
  metadata: { name: `my-${packageName}`, namespace: 'demo' },
  spec: { name: packageName, channel: 'stable', source: 'community', sourceNamespace: 'olm', ...spec },
});

const operatorGroup = (spec: object = {}): object => ({
  apiVersion: 'operators.coreos.com/v1',
  kind: 'OperatorGroup',
  metadata: { name: 'group', namespace: 'demo' },
  spec,
});

const workload = (objects: readonly KubeObject[], name: string): KubeObject | undefined =>
  objects.find((object) => object.kind === 'Deployment' && object.metadata.name === name);
const targets = (object: KubeObject | undefined): string | undefined =>
  object?.spec.template.metadata.annotations['olm.targetNamespaces'];

describe('opmate deployment render of a ClusterExtension', () => {
  it('resolves the bundle in the catalog, and renders it with its configuration', async () => {
    const inline = { watchNamespace: 'team', deploymentConfig: { env: [{ name: 'A', value: 'b' }] } };
    const { code, objects, stderr } = await render(
      [extension({ config: { configType: 'Inline', inline } })],
      '--catalog=community=operators',
    );
    expect([code, stderr.replace(/^info: .*\n/gm, '')]).toEqual([0, '']);
    expect(stderr).toContain('info: widget: widget.v1.1.0, in channel stable, from catalog community\n');
    const manager = workload(objects, 'widget-manager');
    expect(manager?.metadata.namespace).toBe('demo');
    expect(manager?.spec.template.spec.containers).toMatchObject([
      { image: 'registry.example.com/widget:v1.1.0', env: [{ name: 'A', value: 'b' }] },
    ]);
    expect(targets(manager)).toBe('team');
  });

  it('keeps to version and channels, and to catalogs with the labels of its selector', async () => {
    const catalog = {
      version: '<1.1.0',
      selector: { matchLabels: { 'olm.operatorframework.io/metadata.name': 'community' } },
    };
    const pinned = await render([extension({}, catalog)], '--catalog=community=operators');
    expect(workload(pinned.objects, 'widget-manager')?.spec.template.spec.containers).toMatchObject([
      { image: 'registry.example.com/widget:v1.0.0' },
    ]);
    const other = await render([extension({}, catalog)], '--catalog=operators');
    expect([other.code, other.stdout]).toEqual([3, '']);
    expect(other.stderr).toContain(
      'spec.source.catalog.selector: no catalog has such labels\n  hint: add its document, or specify it as NAME=REF\n',
    );
    const none = await render([extension({}, { channels: ['beta'] })], '--catalog=operators');
    expect([none.code, none.stdout]).toEqual([3, '']);
    expect(none.stderr).toContain('beta');
  });

  it('reads ClusterCatalogs of the documents, and refuses what the API server refuses', async () => {
    const image = `${registry.host()}/operators/catalog:v1`;
    const built = await sandbox.run(['catalog', 'build', 'operators', '-t', image, '-i', 'scratch']);
    expect(built.code).toBe(0);
    const catalog = (spec: object = {}): object => ({
      apiVersion: 'olm.operatorframework.io/v1',
      kind: 'ClusterCatalog',
      metadata: { name: 'community' },
      spec: { source: { type: 'Image', image: { ref: image } }, ...spec },
    });
    const { objects } = await render([extension(), catalog()]);
    expect(workload(objects, 'widget-manager')).toBeDefined();
    const unavailable = await render([extension(), catalog({ availabilityMode: 'Unavailable' })]);
    expect(unavailable.stderr).toContain('no catalog');
    const wrong = await render(
      [
        extension({ serviceAccount: { name: 'installer' }, progressDeadlineMinutes: 5 }),
        catalog({ priorty: 1 }),
      ],
      '--catalog=operators',
    );
    expect([wrong.code, wrong.stdout]).toEqual([3, '']);
    expect(wrong.stderr).toContain('documents.yaml:2:');
    expect(wrong.stderr).toMatch(
      /ClusterExtension "widget": spec\.progressDeadlineMinutes: Invalid value: 5: /,
    );
    expect(wrong.stderr).toMatch(/ClusterCatalog "community": spec\.priorty: unknown field/);
    expect(wrong.stderr).toMatch(/warn.*: ClusterExtension "widget": spec\.serviceAccount: deprecated/);
  });
});

describe('opmate deployment render of a Subscription', () => {
  it('follows the channel to its head, and watches the namespaces of the OperatorGroup', async () => {
    const { code, objects } = await render(
      [
        subscription('widget', {
          startingCSV: 'widget.v1.0.0',
          config: { env: [{ name: 'A', value: 'b' }] },
        }),
        operatorGroup({ targetNamespaces: ['team-b', 'team-a'] }),
      ],
      '--catalog=community=operators',
    );
    expect(code).toBe(0);
    const manager = workload(objects, 'widget-manager');
    expect(manager?.spec.template.spec.containers).toMatchObject([
      { image: 'registry.example.com/widget:v1.1.0', env: [{ name: 'A', value: 'b' }] },
    ]);
    expect(targets(manager)).toBe('team-a,team-b');
    expect(manager?.spec.template.metadata.annotations).toMatchObject({
      'olm.operatorGroup': 'group',
      'olm.operatorNamespace': 'demo',
    });
    const roles = objects.filter(({ kind }) => kind === 'Role').map(({ metadata }) => metadata.namespace);
    expect(new Set(roles)).toEqual(new Set(['team-a', 'team-b']));
  });

  it('stays at startingCSV with manual approval, in all namespaces without targets', async () => {
    const manual = { startingCSV: 'widget.v1.0.0', installPlanApproval: 'Manual' };
    const { objects } = await render(
      [subscription('widget', manual), operatorGroup()],
      '--catalog=community=operators',
    );
    const manager = workload(objects, 'widget-manager');
    expect(manager?.spec.template.spec.containers).toMatchObject([
      { image: 'registry.example.com/widget:v1.0.0' },
    ]);
    expect(targets(manager)).toBe('');
  });

  it('adds a deployment for a dependency', async () => {
    const { objects, stderr } = await render(
      [subscription('gadget'), operatorGroup()],
      '--catalog=community=operators',
    );
    expect(workload(objects, 'widget-manager')).toBeDefined();
    expect(workload(objects, 'gadget-manager')).toBeDefined();
    expect(stderr).toContain('info: widget-stable-community-olm: widget.v1.1.0, in channel stable');
  });

  it('requires one OperatorGroup, a known catalog and a satisfiable request', async () => {
    const alone = await render([subscription('widget')], '--catalog=community=operators');
    expect([alone.code, alone.stdout]).toEqual([3, '']);
    expect(alone.stderr).toContain('0 OperatorGroups in the namespace, expected 1');
    const unknown = await render([subscription('widget'), operatorGroup()]);
    expect(unknown.stderr).toContain('spec.source: unknown catalog olm/community');
    const missing = await render([subscription('gizmo'), operatorGroup()], '--catalog=community=operators');
    expect([missing.code, missing.stdout]).toEqual([3, '']);
    expect(missing.stderr).toContain('gizmo');
  });
});

describe('opmate deployment render of a package', () => {
  it('renders what `deployment create` writes, with the digest of the image', async () => {
    const args = ['widget', '--catalog=operators', '-n', 'demo', '--version', '1.0.0'];
    const direct = await sandbox.run(['deployment', 'render', ...args]);
    expect(direct.code).toBe(0);
    const created = await sandbox.run(['deployment', 'create', ...args, '--kind', 'BundleDeployment']);
    const document = load(created.stdout) as { spec: { sources: { image: { ref: string } }[] } };
    expect(document.spec.sources[0]?.image.ref).toMatch(/\/operators\/widget@sha256:[0-9a-f]{64}$/);
    await sandbox.write({ 'created.yaml': created.stdout });
    const rendered = await sandbox.run(['deployment', 'render', '-f', 'created.yaml']);
    expect(rendered.stdout).toBe(direct.stdout);
    const bundleDeployment = ['deployment', 'create', ...args, '--kind', 'BundleDeployment'];
    await sandbox.run([...bundleDeployment, '--to-kustomize', 'kustomize']);
    await sandbox.run([...bundleDeployment, '--to-chart', 'chart']);
    for (const file of ['kustomize/deployment.yaml', 'chart/templates/deployment.yaml']) {
      const text = await readFile(path.join(sandbox.work, file), 'utf8');
      expect(text).toContain(document.spec.sources[0]?.image.ref);
    }
    const none = await sandbox.run(['deployment', 'render', 'gizmo', '--catalog=operators', '-n', 'demo']);
    expect([none.code, none.stdout]).toEqual([3, '']);
  });

  it('refuses a package beside documents, and a package without catalog or namespace', async () => {
    const both = await sandbox.run(['deployment', 'render', 'widget', '-f', 'created.yaml']);
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining('--file and <package>')]);
    const alone = await sandbox.run(['deployment', 'render', 'widget', '-n', 'demo']);
    expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining('missing --catalog')]);
    const nowhere = await sandbox.run(['deployment', 'render', 'widget', '--catalog=operators']);
    expect([nowhere.code, nowhere.stderr]).toEqual([
      2,
      expect.stringContaining('missing --install-namespace'),
    ]);
  });
});
