import { readFile, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { load, loadAll } from 'js-yaml';
import { beforeAll, describe, expect, it } from 'vitest';
import { renderChart } from '../../src/helm/render-chart.js';
import { loadChart } from '../../src/helm/chart.js';
import { prepareChart } from '../../src/helm/chart-values.js';
import { useSandbox } from '../support/command-line.js';
import { inDirectory, smallBundle } from '../support/small-bundle.js';

const sandbox = useSandbox();

const widgetDefinition = JSON.stringify({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    names: { kind: 'Widget', plural: 'widgets' },
    scope: 'Namespaced',
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
});

function create(...args: string[]) {
  return sandbox.run(['bundle', 'deployment', 'create', 'widget', '-n', 'demo', ...args]);
}

beforeAll(async () => {
  const bundle = (version: string) => ({
    schema: 'olm.bundle',
    package: 'widget',
    name: `widget.v${version}`,
    image: `registry.example.com/widget:v${version}`,
    properties: [{ type: 'olm.package', value: { packageName: 'widget', version } }],
  });
  const blobs = [
    { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
    {
      schema: 'olm.channel',
      package: 'widget',
      name: 'stable',
      entries: [{ name: 'widget.v1.0.0' }, { name: 'widget.v1.1.0', replaces: 'widget.v1.0.0' }],
    },
    bundle('1.0.0'),
    bundle('1.1.0'),
  ];
  await sandbox.write({
    'catalog/catalog.json': blobs.map((blob) => JSON.stringify(blob)).join('\n'),
    'config.yaml': 'watchNamespace: team\ndeploymentConfig:\n  env:\n  - name: A\n    value: b\n',
    'wrong.yaml': 'watchnamespace: team\n',
    ...inDirectory('bundle', {
      ...smallBundle({
        version: '1.1.0',
        spec: { installModes: [{ type: 'AllNamespaces', supported: true }] },
      }),
      'manifests/widget.yaml': widgetDefinition,
    }),
  });
});

describe('opmate bundle deployment create', () => {
  it('writes a ClusterExtension that is pinned to the resolved version, with the reason as comments', async () => {
    const { code, stdout } = await create('--catalog', 'catalog', '--config', 'config.yaml');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^# widget\.v1\.1\.0, in channel stable, from catalog catalog\n# image registry\.example\.com/,
    );
    expect(load(stdout)).toEqual({
      apiVersion: 'olm.operatorframework.io/v1',
      kind: 'ClusterExtension',
      metadata: { name: 'widget' },
      spec: {
        namespace: 'demo',
        source: { sourceType: 'Catalog', catalog: { packageName: 'widget', version: '1.1.0' } },
        config: {
          configType: 'Inline',
          inline: { watchNamespace: 'team', deploymentConfig: { env: [{ name: 'A', value: 'b' }] } },
        },
      },
    });
  });

  it('writes a Subscription with its OperatorGroup, and needs the name of its CatalogSource', async () => {
    const options = ['--kind', 'Subscription', '--config', 'config.yaml', '--version', '<1.1'];
    const { stdout } = await create('--catalog', 'community=catalog', ...options);
    expect(loadAll(stdout)).toMatchObject([
      { kind: 'OperatorGroup', spec: { targetNamespaces: ['team'] } },
      {
        kind: 'Subscription',
        spec: {
          channel: 'stable',
          source: 'community',
          sourceNamespace: 'olm',
          startingCSV: 'widget.v1.0.0',
          installPlanApproval: 'Manual',
          config: { env: [{ name: 'A', value: 'b' }] },
        },
      },
    ]);
    const data = await create('--catalog', 'community=catalog', ...options, '-o', 'json');
    expect(JSON.parse(data.stdout)).toEqual({ apiVersion: 'v1', kind: 'List', items: loadAll(stdout) });
    const { code, stderr } = await create('--catalog', 'catalog', ...options);
    expect([code, stderr]).toEqual([2, expect.stringContaining('needs the name of its CatalogSource')]);
  });

  it('writes a Helm chart with the same documents', async () => {
    const args = ['--catalog', 'catalog', '--config', 'config.yaml'];
    const { stdout: direct } = await create(...args);
    await create(...args, '--to-chart', 'chart');
    const names = ['Chart.yaml', 'values.yaml', 'templates/deployment.yaml'];
    const files = await Promise.all(
      names.map(async (name) => [name, await readFile(path.join(sandbox.work, 'chart', name))] as const),
    );
    const { files: rendered } = renderChart(prepareChart(await loadChart(new Map(files), 'chart')), {});
    expect(load(rendered[0]?.text ?? '')).toEqual(load(direct));
    const again = await create(...args, '--to-chart', 'chart');
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('must be empty')]);
  });

  it.each(['--to-chart', '--to-kustomize'])('%s lets only the user read configuration', async (flag) => {
    const modesOf = async (directory: string): Promise<number[]> => {
      const entries = await readdir(path.join(sandbox.work, directory), {
        recursive: true,
        withFileTypes: true,
      });
      const files = entries.filter((entry) => entry.isFile());
      expect(files.length).toBeGreaterThan(1);
      const modes = files.map(async ({ parentPath, name }) => (await stat(path.join(parentPath, name))).mode);
      return [...new Set((await Promise.all(modes)).map((mode) => mode & 0o077))];
    };
    const directory = flag.slice('--to-'.length);
    await create('--catalog', 'catalog', flag, `open-${directory}`);
    expect(await modesOf(`open-${directory}`)).toEqual([0o044 & ~process.umask()]);
    await create('--catalog', 'catalog', '--config', 'config.yaml', flag, `private-${directory}`);
    expect(await modesOf(`private-${directory}`)).toEqual([0]);
  });

  it('writes a kustomization', async () => {
    await create('--catalog', 'catalog', '--to-kustomize', 'kustomize');
    const text = await readFile(path.join(sandbox.work, 'kustomize', 'kustomization.yaml'), 'utf8');
    expect(load(text)).toMatchObject({ resources: ['deployment.yaml'] });
  });

  it('prints the ClusterObjectSet of OLM v1, inline or packed into Secrets', async () => {
    const args = ['--catalog', 'catalog', '--as-objectset', '--bundle', 'bundle'];
    const { code, stdout } = await create(...args);
    expect(code).toBe(0);
    expect(load(stdout)).toMatchObject({
      metadata: { name: 'widget-1' },
      spec: { phases: [{ name: 'crds' }] },
    });
    const packed = loadAll((await create(...args, '--pack', 'olmv1-system')).stdout);
    expect(packed).toMatchObject([{ kind: 'Secret' }, { kind: 'ClusterObjectSet' }]);
  });

  it('ends with findings where OLM v1 refuses the configuration, and for an unknown package', async () => {
    const args = ['--catalog', 'catalog', '--as-objectset', '--bundle', 'bundle', '--config', 'config.yaml'];
    const refused = await create(...args);
    expect([refused.code, refused.stderr]).toEqual([
      3,
      expect.stringContaining('unknown field "watchNamespace"'),
    ]);
    const wrong = await create('--catalog', 'catalog', '--config', 'wrong.yaml');
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('watchnamespace: unknown field')]);
    const none = await sandbox.run('bundle deployment create other --catalog catalog -n demo'.split(' '));
    expect(none.code).toBe(3);
  });
});
