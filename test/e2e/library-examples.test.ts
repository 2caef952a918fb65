import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { bundlesDirectory, projectRoot, runProgram, useSandbox } from '../support/command-line.js';
import { startRegistry } from '../../src/serve/registry/registry.js';
import { hasKubectl, startApiServer } from '../support/api-server.js';
import { startFaultRegistry } from '../support/fault-registry.js';
import { smallDeployment } from '../support/small-deployment.js';
import { widgetCatalog } from './catalogs.js';
import { makeCatalogImage, serveBuilt } from './images.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs one file of `docs/examples`, which imports `opmate` as a dependent package does. */
function runExample(name: string, ...args: string[]): Promise<Ended> {
  return runExampleIn({}, name, ...args);
}

function runExampleIn(variables: Record<string, string>, name: string, ...args: string[]): Promise<Ended> {
  const env = sandbox.environment({ PATH: process.env['PATH'], ...variables }) as NodeJS.ProcessEnv;
  const file = path.join(projectRoot, 'docs', 'examples', `${name}.js`);
  return runProgram(process.execPath, [file, ...args], { cwd: sandbox.work, env });
}

describe('docs/examples', () => {
  it('has a test for each file', async () => {
    const tested = [
      'gate-catalog',
      'publish-operator',
      'see-install',
      'mirror-image-set',
      'carry-image-set',
      'install-operator',
      'view-catalog',
      'serve-catalogs',
      'push-bundle',
      'mirror-catalog',
      'mirror-mappings',
    ];
    const elsewhere = ['catalog-client', 'edit-index', 'render-and-validate'];
    const files = await readdir(path.join(projectRoot, 'docs', 'examples'));
    const scripts = files.filter((name) => name.endsWith('.js')).map((name) => path.basename(name, '.js'));
    expect(scripts.sort()).toEqual([...tested, ...elsewhere].sort());
  });

  it('gates a catalog', async () => {
    await sandbox.write({
      'good/catalog.json': widgetCatalog,
      'bad/catalog.json': '{"schema":"olm.package"}',
    });
    const good = await runExample('gate-catalog', 'good');
    expect(good).toMatchObject({ code: 0, stderr: '' });
    expect(good.stdout).toMatch(/the catalog can be released\n$/);
    expect((await runExample('gate-catalog', 'bad')).code).not.toBe(0);
  });

  it('publishes an operator', async () => {
    const versionOf = (version: string): string => path.join(bundlesDirectory, 'skupper-operator', version);
    const init = await sandbox.run(['init', 'skupper-operator', '--default-channel', 'stable']);
    const entries = [{ name: 'skupper-operator.v1.8.4' }];
    const channel = { schema: 'olm.channel', package: 'skupper-operator', name: 'stable', entries };
    const template = ['--alpha-image-ref-template', 'example.com/skupper:{{.Version}}'];
    const rendered = await sandbox.run(['render', versionOf('1.8.4'), ...template]);
    await sandbox.write({ 'catalog/catalog.json': init.stdout + JSON.stringify(channel) + rendered.stdout });
    const result = await runExample('publish-operator', versionOf('1.9.0'), 'catalog', 'stable');
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(result.stdout).toContain('skupper-operator.v1.9.0');
    expect(await sandbox.run(['validate', 'catalog'])).toMatchObject({ code: 0 });
    const invalid = await runExample('publish-operator', path.join(bundlesDirectory, 'microcks', '0.2.1'));
    expect(invalid).toMatchObject({ code: 3, stderr: '' });
  });

  it('shows the effects of an installation', async () => {
    const bundle = path.join(bundlesDirectory, 'skupper-operator', '1.9.0');
    const { code, stdout } = await runExample('see-install', bundle, 'skupper');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Deployment: 1$/m);
    expect(stdout).toMatch(/^\d+ permissions, \d+ cluster-wide$/m);
  });

  it('exports the page of a catalog', async () => {
    await sandbox.write({ 'catalog/catalog.json': widgetCatalog });
    const result = await runExample('view-catalog', 'catalog', 'page');
    expect(result).toEqual({ code: 0, stdout: 'open page/index.html\n', stderr: '' });
    expect(await readFile(at('page', 'index.html'), 'utf8')).toContain('exported.js');
  });

  it('builds and pushes a bundle image, and serves a catalog image by its manifest', async () => {
    const target = await startRegistry({ directory: at('images') });
    const registry = await startFaultRegistry();
    try {
      const { host } = new URL(target.url);
      const bundle = path.join(bundlesDirectory, 'skupper-operator', '1.9.0');
      const pushed = await runExample('push-bundle', bundle, 'b.tar', `${host}/ns/bundle:v1`, '--use-http');
      expect(pushed).toMatchObject({ code: 0, stderr: '' });
      expect(pushed.stdout).toMatch(/^pushed .*\/ns\/bundle@sha256:[0-9a-f]{64}\n$/);
      serveBuilt(registry, 'ns/catalog', 'v1', await makeCatalogImage({ 'all.json': widgetCatalog }));
      const ref = `${registry.host}/ns/catalog:v1`;
      await sandbox.write({
        'manifests/widgets.yaml': {
          apiVersion: 'olm.operatorframework.io/v1',
          kind: 'ClusterCatalog',
          metadata: { name: 'widgets' },
          spec: { source: { type: 'Image', image: { ref } } },
        },
      });
      const served = await runExample('serve-catalogs', 'manifests', '--use-http');
      expect(served).toMatchObject({ code: 0, stderr: '' });
      expect(served.stdout).toContain('widgets/widget\n');
      const args = [ref, `${host}/mirror`, 'out', '--use-http', '--dry-run'];
      const mirrored = await runExample('mirror-catalog', ...args);
      expect(mirrored).toMatchObject({ code: 0, stderr: '' });
      expect(await readFile(at('out', 'mapping.txt'), 'utf8')).toContain(`${host}/mirror`);
    } finally {
      await registry.close();
      await target.close();
    }
  });

  it('copies the images of a mapping file, and reports the missing ones', async () => {
    const registry = await startFaultRegistry();
    const target = await startRegistry({ directory: at('mapped') });
    try {
      serveBuilt(registry, 'ns/catalog', 'v1', await makeCatalogImage({ 'all.json': widgetCatalog }));
      const copied = `${new URL(target.url).host}/mirror/catalog`;
      await sandbox.write({ 'mapping.txt': `${registry.host}/ns/catalog:v1=${copied}:v1\n` });
      const first = await runExample('mirror-mappings', 'mapping.txt', '--use-http');
      expect(first).toMatchObject({ code: 0, stderr: '' });
      expect(first.stdout).toMatch(new RegExp(`^sha256:[0-9a-f]{64} ${copied}:v1\n$`));
      await sandbox.write({ 'mapping.txt': `${registry.host}/ns/catalog:v2=${copied}:v2\n` });
      expect(await runExample('mirror-mappings', 'mapping.txt', '--use-http')).toEqual({
        ...{ code: 1, stdout: '' },
        stderr: `${registry.host}/ns/catalog:v2: not found\n`,
      });
    } finally {
      await target.close();
      await registry.close();
    }
  });

  it.skipIf(!hasKubectl)('installs an operator once its hash is approved (needs kubectl)', async () => {
    const server = await startApiServer();
    try {
      server.put({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'widgets' } });
      await sandbox.write({ config: server.kubeconfig, 'deployment.yaml': smallDeployment('widgets', '1') });
      const install = (...hashes: string[]) =>
        runExampleIn({ KUBECONFIG: at('config') }, 'install-operator', 'deployment.yaml', ...hashes);
      const shown = await install();
      const [, hash = ''] =
        /^add ConfigMap settings\nwidget: declined: (sha256:.*)\n$/.exec(shown.stdout) ?? [];
      expect(hash).not.toBe('');
      expect((await install(hash)).stdout).toBe('add ConfigMap settings\nwidget: applied: revision 1\n');
      expect((await install(hash)).stdout).toBe('widget: applied: revision unchanged\n');
    } finally {
      await server.close();
    }
  });

  it('mirrors an image set directly and through an archive', async () => {
    const registry = await startFaultRegistry();
    const target = await startRegistry({ directory: at('target') });
    try {
      serveBuilt(registry, 'ns/catalog', 'v1', await makeCatalogImage({ 'all.json': widgetCatalog }));
      await sandbox.write({
        'imageset.yaml': {
          kind: 'ImageSetConfiguration',
          apiVersion: 'mirror.openshift.io/v2alpha1',
          mirror: { additionalImages: [{ name: `${registry.host}/ns/catalog:v1` }] },
        },
      });
      const args = [
        'imageset.yaml',
        `docker://${new URL(target.url).host}/mirror`,
        'resources',
        '--use-http',
      ];
      const first = await runExample('mirror-image-set', ...args);
      expect(first).toMatchObject({ code: 0, stderr: '' });
      expect(first.stdout).toMatch(
        /^1 images, [1-9]\d* blobs to copy\nmirrored 1 images\nnext: kubectl apply/,
      );
      const again = await runExample('mirror-image-set', ...args);
      expect(again.stdout).toContain(', 0 blobs to copy\n');
      expect(await readFile(at('resources', 'itms-oc-mirror.yaml'), 'utf8')).toContain('ImageTagMirrorSet');
      const host = new URL(target.url).host;
      const carried = await runExample(
        'carry-image-set',
        'imageset.yaml',
        'carry',
        `docker://${host}/far`,
        '--use-http',
      );
      expect(carried).toMatchObject({ code: 0, stderr: '' });
      expect(carried.stdout).toMatch(
        /^1 images, [1-9]\d* bytes to write\narchive sha256:[0-9a-f]{64}\nmirrored 1 images\n/,
      );
      const resources = at('carry', 'working-dir', 'cluster-resources', 'itms-oc-mirror.yaml');
      expect(await readFile(resources, 'utf8')).toContain(`${host}/far/ns`);
    } finally {
      await target.close();
      await registry.close();
    }
  });
});
