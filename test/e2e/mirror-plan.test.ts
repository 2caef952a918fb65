import { readFile, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseYaml } from '../../src/document/yaml.js';
import type { JsonObject } from '../../src/document/json.js';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { catalogOf, widgetCatalog } from './catalogs.js';
import { makeCatalogImage, serveBuilt, storeImage } from './images.js';

const sandbox = useSandbox();
let source: FaultRegistry;
let digest = '';

beforeAll(async () => {
  source = await startFaultRegistry();
  const image = await makeCatalogImage({
    'widget/catalog.json': widgetCatalog,
    'gadget/catalog.json': catalogOf('gadget', [
      { name: 'gadget.v1.0.0' },
      { name: 'gadget.v1.1.0', replaces: 'gadget.v1.0.0' },
    ]),
  });
  digest = serveBuilt(source, 'acme/index', 'v1', image);
  await storeImage(path.join(sandbox.work, 'layouts', 'index'), 'v1', image);
});
afterAll(() => source.close());
beforeEach(() => void (source.requests.length = 0));

const catalog = (): string => `${source.host}/acme/index:v1`;
const operators = (below = ''): string => `  operators:\n  - catalog: ${catalog()}\n${below}`;

/** Plans for `registry.test/ocm` with a workspace of its own. */
async function plan(workspace: string, mirror: string, ...flags: string[]) {
  const text = `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n${mirror}`;
  await sandbox.write({ [`${workspace}.yaml`]: text });
  const config = ['--config', `${workspace}.yaml`, '--workspace', `file://${workspace}`, '--use-http'];
  return sandbox.run(['mirror', 'docker://registry.test/ocm', '--dry-run', ...config, ...flags]);
}

const fileOf = (workspace: string, ...names: string[]): string =>
  path.join(sandbox.work, workspace, 'working-dir', ...names);
const mappingOf = async (workspace: string): Promise<string[]> =>
  (await readFile(fileOf(workspace, 'dry-run', 'mapping.txt'), 'utf8')).trimEnd().split('\n');
const resourcesOf = async (workspace: string): Promise<Record<string, string>> => {
  const names = (await readdir(fileOf(workspace, 'cluster-resources'))).sort();
  const texts = names.map(async (name) => {
    return [name, await readFile(fileOf(workspace, 'cluster-resources', name), 'utf8')];
  });
  return Object.fromEntries((await Promise.all(texts)) as [string, string][]);
};
/** A line of the mapping of an image that keeps its path and tag. */
const same = (image: string): string =>
  `docker://quay.io/example/${image}=docker://registry.test/ocm/example/${image}`;
const catalogLine = (name = 'acme/index:v1'): string =>
  `docker://${source.host}/acme/index@${digest}=docker://registry.test/ocm/${name}`;

describe('mirror --config --dry-run', () => {
  it('writes the mapping and the cluster resources, and reports the selection', async () => {
    const below = '    packages:\n    - name: widget\n      minVersion: 1.1.0\n      maxVersion: 1.2.0\n';
    const result = await plan('range', operators(below));
    expect(result.stderr).toContain(`${catalog()}: ${digest}, 1 package, 2 bundles, rebuilt`);
    expect(result.stderr).toContain(
      '  widget: 2 bundles, 4 images (stable to widget.v1.2.0, beta to widget.v1.2.0)',
    );
    expect(result).toMatchObject({ code: 0, stdout: '' });
    expect(await mappingOf('range')).toEqual([
      catalogLine(),
      same('widget-bundle:v1.1.0'),
      same('widget-bundle:v1.2.0'),
      same('widget:v1.1.0'),
      same('widget:v1.2.0'),
    ]);
    const copy = 'opmate mirror -c range.yaml --workspace file://range --use-http docker://registry.test/ocm';
    expect(result.stderr.trimEnd().split('\n').at(-1)).toBe(`info: next: ${copy}`);
    const resources = await resourcesOf('range');
    expect(Object.keys(resources)).toEqual(['cc-index-v1.yaml', 'cs-index-v1.yaml', 'itms-oc-mirror.yaml']);
    expect(resources['itms-oc-mirror.yaml']).toBe(
      [
        '---',
        'apiVersion: config.openshift.io/v1',
        'kind: ImageTagMirrorSet',
        'metadata:',
        '  annotations:',
        '    createdBy: opmate',
        '  name: itms-operator-0',
        'spec:',
        '  imageTagMirrors:',
        '  - mirrors:',
        '    - registry.test/ocm/example',
        '    source: quay.io/example',
        '',
      ].join('\n'),
    );
    expect(parseYaml(resources['cs-index-v1.yaml'] as string)).toMatchObject({
      metadata: { name: 'cs-index-v1', namespace: 'openshift-marketplace' },
      spec: { image: 'registry.test/ocm/acme/index:v1', sourceType: 'grpc' },
    });
    expect(parseYaml(resources['cc-index-v1.yaml'] as string)).toMatchObject({
      spec: { source: { image: { ref: 'registry.test/ocm/acme/index:v1' }, type: 'Image' } },
    });
    expect(await sandbox.leftovers()).toEqual([]);
    // Of images nothing is read but the catalog, which is looked up once by its tag.
    const asked = source.requests.map(({ path: url }) => url).filter((url) => url.includes('/manifests/'));
    expect(asked.filter((url) => url.endsWith('/v1'))).toHaveLength(1);
    expect(asked.every((url) => url.includes('acme/index'))).toBe(true);
  });

  it('writes exactly the files of the last plan, reproducibly', async () => {
    await plan('again', operators());
    const before = [await mappingOf('again'), await resourcesOf('again')];
    await writeFile(fileOf('again', 'cluster-resources', 'stale.yaml'), 'old');
    await plan('again', operators());
    expect([await mappingOf('again'), await resourcesOf('again')]).toEqual(before);
    expect((await readdir(fileOf('again'))).sort()).toEqual(['cluster-resources', 'dry-run']);
  });

  it('copies a whole catalog unchanged, under another name if configured', async () => {
    const result = await plan(
      'full',
      operators('    full: true\n    targetCatalog: mine/all\n    targetTag: v2\n'),
    );
    expect(result.stderr).toContain(`${catalog()}: ${digest}, 2 packages, 6 bundles, unchanged`);
    const lines = await mappingOf('full');
    expect(lines).toContain(catalogLine('mine/all:v2'));
    expect(lines).toHaveLength(1 + 8 + 2);
    expect(Object.keys(await resourcesOf('full'))).toContain('cs-all-v2.yaml');
  });

  it('reads catalogs of layout directories, additional images and templates, and omits blocked images', async () => {
    const spec = { displayName: 'Ours', image: 'unused', secrets: ['pull'], sourceType: 'grpc' };
    await sandbox.write({
      'template.json': {
        apiVersion: 'operators.coreos.com/v1alpha1',
        kind: 'CatalogSource',
        metadata: { name: 'unused', labels: { team: 'a' } },
        spec,
      },
    });
    const more = [
      '  operators:',
      '  - catalog: oci://layouts/index',
      '    targetCatalogSourceTemplate: template.json',
      '  additionalImages:',
      `  - name: quay.io/tools/a@sha256:${'a'.repeat(64)}`,
      '  - name: quay.io/tools/b:v1',
      '    targetRepo: other/b',
      '    targetTag: v2',
      '  blockedImages:',
      "  - name: '/gadget:'",
      '',
    ];
    const result = await plan('more', more.join('\n'));
    expect(result).toMatchObject({ code: 0 });
    expect(result.stderr).toContain('1 image blocked by "/gadget:"');
    expect(result.stderr).toContain('additional images: 2');
    const hex = 'a'.repeat(64);
    expect(await mappingOf('more')).toEqual([
      same('widget-bundle:v1.3.0'),
      same('widget:v1.3.0'),
      `docker://quay.io/tools/a@sha256:${hex}=docker://registry.test/ocm/tools/a:sha256-${hex}`,
      'docker://quay.io/tools/b:v1=docker://registry.test/ocm/other/b:v2',
      `oci:layouts/index@${digest}=docker://registry.test/ocm/index:latest`,
    ]);
    const resources = await resourcesOf('more');
    expect(parseYaml(resources['cs-index-latest.yaml'] as string)).toMatchObject({
      metadata: { name: 'cs-index-latest', labels: { team: 'a' } },
      spec: { ...spec, image: 'registry.test/ocm/index:latest' },
    });
    expect(resources['idms-oc-mirror.yaml']).toContain('name: idms-generic-0');
    const documents = (resources['itms-oc-mirror.yaml'] as string).split('---\n').slice(1);
    expect(documents.map((text) => (parseYaml(text) as { spec: JsonObject }).spec)).toEqual([
      { imageTagMirrors: [{ mirrors: ['registry.test/ocm/other/b'], source: 'quay.io/tools/b' }] },
      { imageTagMirrors: [{ mirrors: ['registry.test/ocm/example'], source: 'quay.io/example' }] },
    ]);
  });

  it('writes an ImageContentSourcePolicy and shorter paths on request', async () => {
    const hex = 'b'.repeat(64);
    const image = `  additionalImages:\n  - name: quay.io/deep/er/tool@sha256:${hex}\n`;
    const result = await plan(
      'icsp',
      operators() + image,
      '--icsp',
      '--max-nested-paths',
      '2',
      '--name',
      'ours',
      '--poll-interval',
      '6h',
    );
    expect(result.stderr).toContain('referenced by tag: not covered by ImageContentSourcePolicy');
    const resources = await resourcesOf('icsp');
    expect(Object.keys(resources)).toEqual([
      'cc-acme-index-v1.yaml',
      'cs-acme-index-v1.yaml',
      'icsp-oc-mirror.yaml',
    ]);
    expect(resources['icsp-oc-mirror.yaml']).toContain('    - registry.test/ocm/deep-er-tool\n');
    expect(parseYaml(resources['cs-acme-index-v1.yaml'] as string)).toMatchObject({
      metadata: { name: 'ours' },
      spec: { updateStrategy: { registryPoll: { interval: '360m' } } },
    });
    expect(await mappingOf('icsp')).toContain(
      `docker://quay.io/deep/er/tool@sha256:${hex}=docker://registry.test/ocm/deep-er-tool:sha256-${hex}`,
    );
  });

  it('plans several catalogs, shared images once', async () => {
    const both = `${operators()}  - catalog: ${catalog()}\n    targetTag: v2\n`;
    expect((await plan('several', both)).code).toBe(0);
    expect(await mappingOf('several')).toEqual([
      catalogLine(),
      catalogLine('acme/index:v2'),
      same('gadget:v1'),
      same('widget-bundle:v1.3.0'),
      same('widget:v1.3.0'),
    ]);
    const names = ['cc-index-v1', 'cc-index-v2', 'cs-index-v1', 'cs-index-v2', 'itms-oc-mirror'];
    expect(Object.keys(await resourcesOf('several'))).toEqual(names.map((name) => `${name}.yaml`));
  });

  it('shows the images of a package in two catalogs by catalog', async () => {
    const range = (min: string, max: string): string =>
      `    packages:\n    - name: widget\n      minVersion: ${min}\n      maxVersion: ${max}\n`;
    const second = `  - catalog: ${catalog()}\n    targetTag: v2\n${range('1.1.0', '1.2.0')}`;
    const result = await plan('two', `${operators(range('1.2.0', '1.2.0'))}${second}`);
    expect(result).toMatchObject({ code: 0 });
    expect(result.stderr).toContain('  widget: 1 bundle, 2 images (');
    expect(result.stderr).toContain('  widget: 2 bundles, 4 images (');
  });

  it('refuses two images with one name, and writes nothing', async () => {
    const result = await plan(
      'clash',
      `${operators()}  additionalImages:\n  - name: docker.io/example/widget:v1.3.0\n`,
    );
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toMatch(/same target for docker:\/\/docker.io\/\S+ and docker:\/\/quay.io/);
    expect((await readdir(sandbox.work)).includes('clash')).toBe(false);
  });

  it('mirrors repositories with one name, with a warning, and a shared digest once', async () => {
    const hex = '3'.repeat(64);
    const images = [
      `docker.io/example/tool@sha256:${hex}`,
      `quay.io/example/tool@sha256:${hex}`,
      'gcr.io/example/widget:v9',
    ];
    const additional = `  additionalImages:\n${images.map((name) => `  - name: ${name}\n`).join('')}`;
    const result = await plan('shared', `${operators()}${additional}`);
    expect(result).toMatchObject({ code: 0 });
    expect(result.stderr).toContain(
      'registry.test/ocm/example/tool: shared by docker.io/example/tool, quay.io/example/tool',
    );
    expect(result.stderr).toContain(
      'registry.test/ocm/example/widget: shared by gcr.io/example/widget, quay.io/example/widget',
    );
    const lines = (await mappingOf('shared')).filter((line) => line.includes('/tool'));
    expect(lines).toEqual([
      `docker://docker.io/example/tool@sha256:${hex}=docker://registry.test/ocm/example/tool:sha256-${hex}`,
    ]);
    const { 'idms-oc-mirror.yaml': sets = '' } = await resourcesOf('shared');
    expect(parseYaml(sets)).toMatchObject({
      spec: {
        imageDigestMirrors: ['docker.io', 'quay.io'].map((host) => ({
          source: `${host}/example`,
          mirrors: ['registry.test/ocm/example'],
        })),
      },
    });
  });

  it('reads versions like oc-mirror, and warns that samples have no effect', async () => {
    const below = (bound: string) =>
      `    packages:\n    - name: widget\n      minVersion: ${bound}\n      maxVersion: ${bound}\n`;
    for (const bound of ["'v1.2'", "'1.2'", 'v1.2.0', '1.2.0']) {
      const result = await plan('loose', `${operators(below(bound))}  samples:\n  - image: ruby\n`);
      expect(result).toMatchObject({ code: 0 });
      expect(result.stderr).toContain('widget: 1 bundle');
      expect(result.stderr).toContain('loose.yaml:10:3: mirror.samples: no effect, as with oc-mirror');
      expect(await mappingOf('loose')).toEqual([
        catalogLine(),
        same('widget-bundle:v1.2.0'),
        same('widget:v1.2.0'),
      ]);
    }
  });

  it('names objects of a catalog by its path at the target', async () => {
    const below = '    targetCatalog: deep/er/index\n';
    expect(await plan('nested', operators(below), '--max-nested-paths', '2')).toMatchObject({ code: 0 });
    expect(Object.keys(await resourcesOf('nested'))).toContain('cs-deep-er-index-v1.yaml');
  });

  it('names additional images from layouts after their directory', async () => {
    const image = path.join(sandbox.work, 'layouts', 'index');
    expect(await plan('layout', `  additionalImages:\n  - name: oci://${image}\n`)).toMatchObject({
      code: 0,
    });
    expect(await mappingOf('layout')).toEqual([`oci:${image}=docker://registry.test/ocm/index:latest`]);
    const odd = await plan('odd', '  additionalImages:\n  - name: oci:///tmp/No-\n');
    expect(odd.stderr).toContain(
      'odd.yaml:5:5: mirror.additionalImages[0].name: "no-" is not a repository path',
    );
  });

  it('reports all errors of a configuration before any request', async () => {
    const result = await plan('wrong', operators('    ful: true\n  platform:\n    graph: true\n'));
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toBe(
      'error: wrong.yaml:6:5: mirror.operators[0].ful: unknown field\nhint: use "full"\n',
    );
    expect(source.requests).toEqual([]);
  });

  it('reports everything missing in catalogs and charts together', async () => {
    const below = '    packages:\n    - name: widgte\n    - name: gadget\n      minVersion: 5.0.0\n';
    const helm = '  helm:\n    local:\n    - path: charts/none\n    - path: none.tgz\n';
    const result = await plan('absent', operators(`${below}${helm}`));
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toBe(
      `error: absent.yaml:7:7: package "widgte" not found in ${catalog()} (did you mean "widget"?)\n` +
        `error: absent.yaml:8:7: package "gadget" in ${catalog()} has no matching content ` +
        '(channel "stable" has no bundle from version 5.0.0 (the nearest are 1.0.0 and 1.1.0))\n' +
        'error: chart charts/none: no such file or directory\n' +
        'error: chart none.tgz: no such file or directory\n',
    );
  });

  it('tags a catalog referenced by digest with its digest, rebuilt or not', async () => {
    const named = `  operators:\n  - catalog: ${source.host}/acme/index@${digest}\n`;
    expect((await plan('rebuilt', named)).code).toBe(0);
    const line = (await mappingOf('rebuilt')).find((text) => text.includes('/acme/index@'));
    const tag = /index:(sha256-[0-9a-f]{64})$/.exec(line ?? '')?.[1];
    expect(tag).toBeDefined();
    expect(tag).not.toBe(digest.replace(':', '-'));
    expect((await plan('digest', `${named}    targetTag: v3\n`)).code).toBe(0);
    expect((await plan('digest', `${named}    full: true\n`)).code).toBe(0);
    const hex = digest.slice('sha256:'.length);
    expect(await mappingOf('digest')).toContain(catalogLine(`acme/index:sha256-${hex}`));
    expect(Object.keys(await resourcesOf('digest'))).toContain(`cs-index-sha256-${hex.slice(0, 5)}.yaml`);
  });

  it.each([
    [['registry.test/ocm', '--dry-run'], '"registry.test/ocm": not a registry or directory'],
    [['docker://registry.test/a', 'docker://registry.test/b', '--dry-run'], 'expected one destination'],
    [['docker://registry.test/a', '--dry-run', '--name', 'No_name'], '--name "No_name": invalid object name'],
    [['docker://registry.test/a', '--dry-run', '--prefix', '-'], '--prefix "-": invalid name prefix'],
    [
      ['docker://registry.test/a', '--dry-run', '--poll-interval', '30'],
      '--poll-interval "30": expected a duration from 1m to 9999h',
    ],
    [['docker://registry.test/a', '--dry-run', '--workspace', 'here'], '--workspace "here": not a directory'],
  ])('refuses %j', async (args, message) => {
    await sandbox.write({ 'any.yaml': 'kind: ImageSetConfiguration\n' });
    const result = await sandbox.run(['mirror', '--config', 'any.yaml', ...args]);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain(message);
  });
});
