import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { imageLabels } from '../../src/model/image-labels.js';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { serveImage, smallImage } from '../support/images.js';
import { makeBundleImage, makeCatalogImage, makeImage, serveBuilt } from './images.js';

const sandbox = useSandbox();
let source: FaultRegistry;
let target: Registry;
const insecure = ['--src-tls-verify=false', '--dest-tls-verify=false'];

/** Two packages, each with a bundle whose operand is of its own. */
const catalogOf = (host: string): string =>
  ['one', 'two']
    .flatMap((name) => [
      { schema: 'olm.package', name, defaultChannel: 'stable' },
      { schema: 'olm.channel', package: name, name: 'stable', entries: [{ name: `${name}.v1.0.0` }] },
      {
        schema: 'olm.bundle',
        name: `${name}.v1.0.0`,
        package: name,
        image: `${host}/acme/${name}-bundle:v1`,
        relatedImages: [{ name: 'app', image: `${host}/acme/${name}-app:v1` }],
        properties: [{ type: 'olm.package', value: { packageName: name, version: '1.0.0' } }],
      },
    ])
    .map((blob) => `${JSON.stringify(blob)}\n`)
    .join('');

const images = ['one-bundle', 'one-app', 'two-bundle', 'two-app', 'tool', 'gadget'];

beforeAll(async () => {
  source = await startFaultRegistry();
  for (const name of images) serveImage(source, `acme/${name}`, 'v1', smallImage({ text: name }));
  serveBuilt(source, 'acme/index', 'v1', await makeCatalogImage({ 'all.json': catalogOf(source.host) }));
  target = await startRegistry({ directory: path.join(sandbox.work, 'target') });
});
afterAll(async () => {
  await source.close();
  await target.close();
});
beforeEach(() => void (source.requests.length = 0));

const destinationOf = (name: string): string => `docker://${new URL(target.url).host}/${name}`;
const config = (items: string): string =>
  `# ${items.length}\nkind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n${items}`;
const operators = (): string => `  operators:\n  - catalog: ${source.host}/acme/index:v1\n`;
const additional = (...names: string[]): string =>
  `  additionalImages:\n${names.map((name) => `  - name: ${source.host}/acme/${name}:v1\n`).join('')}`;

async function mirror(file: string, items: string, destination: string, ...flags: string[]) {
  await sandbox.write({ [`${file}.yaml`]: config(items) });
  const args = ['mirror', '-c', `${file}.yaml`, destination, ...insecure, ...flags];
  return sandbox.run(args);
}

async function repositoriesAt(name: string): Promise<string[]> {
  const response = await fetch(`${target.url}/v2/_catalog?n=1000`);
  const { repositories } = (await response.json()) as { repositories: string[] };
  return repositories
    .flatMap((one) => (one.startsWith(`${name}/`) ? [one.slice(name.length + 1)] : []))
    .sort();
}

describe('mirror in place of oc-mirror', () => {
  it('names every missing image with file and line, and copies nothing', async () => {
    const items = `${operators()}${additional('tool', 'lost', 'gone')}`;
    const { code, stderr } = await mirror('missing', items, destinationOf('missing'), '--workspace=file://m');
    expect(code).toBe(1);
    for (const [name, line] of [
      ['lost', 9],
      ['gone', 10],
    ]) {
      expect(stderr).toContain(`${source.host}/acme/${name}:v1: not found`);
      expect(stderr).toContain(`missing.yaml:${line}`);
    }
    const hint = 'hint: check the name and tag, or omit it with --on-error skip-image\n';
    expect(stderr.split('check the name').length).toBe(2);
    expect(stderr.endsWith(hint)).toBe(true);
    expect(await repositoriesAt('missing')).toEqual([]);
  });

  it('checks access to the target before reading a source', async () => {
    const guarded = await startFaultRegistry();
    guarded.requireBasic('me', 'secret');
    try {
      const destination = `docker://${guarded.host}/x`;
      const { code, stderr } = await mirror('access', operators(), destination, '--workspace=file://a');
      expect(code).toBe(1);
      expect(stderr).toContain(`${guarded.host}/x/acme/index: authentication required`);
      expect(source.requests).toEqual([]);
    } finally {
      await guarded.close();
    }
  });

  it('mirrors a part of an archive by a smaller configuration', async () => {
    const all = `${operators()}${additional('tool', 'gadget')}`;
    expect(await mirror('all', all, 'file://carry', '--workspace=file://carry')).toMatchObject({ code: 0 });
    source.requests.length = 0;
    const from = (name: string, items: string) =>
      mirror(name, items, destinationOf(name), '--from=file://carry', `--workspace=file://${name}`);
    expect(await from('same', `\n\n${all}`)).toMatchObject({ code: 0 });
    expect(await repositoriesAt('same')).toHaveLength(7);
    expect(await from('part', additional('gadget'))).toMatchObject({ code: 0 });
    expect(await repositoriesAt('part')).toEqual(['acme/gadget']);
    expect(await readdir(path.join(sandbox.work, 'part/working-dir/cluster-resources'))).toEqual([
      'itms-oc-mirror.yaml',
    ]);
    const more = await from('more', additional('gadget', 'lost'));
    expect(more.stderr).toContain(`docker://${source.host}/acme/lost:v1: not in the archive`);
    expect(await repositoriesAt('more')).toEqual([]);
    const less = await from('less', `${operators()}    packages:\n    - name: one\n`);
    expect(less).toMatchObject({ code: 0 });
    expect(await repositoriesAt('less')).toEqual(['acme/index', 'acme/one-app', 'acme/one-bundle']);
    const catalog = `${destinationOf('less').slice('docker://'.length)}/acme/index:v1`;
    const rendered = await sandbox.run(['render', catalog, '--use-http']);
    expect(rendered.stdout).toContain('one.v1.0.0');
    expect(rendered.stdout).not.toContain('two.v1.0.0');
    expect(await from('again', `${operators()}    packages:\n    - name: one\n`)).toMatchObject({ code: 0 });
    expect(source.requests).toEqual([]);
  });

  it('writes no ClusterCatalog for an unchanged sqlite index, also when locked or from an archive', async () => {
    serveBuilt(source, 'acme/silicom', 'v1', await makeBundleImage('silicom-sts-operator/0.0.1'));
    const bundle = `${source.host}/acme/silicom:v1`;
    const add = ['registry', 'add', '-b', bundle, '-d', 'index.db', '--use-http'];
    expect(await sandbox.run(add)).toMatchObject({ code: 0 });
    const files = { 'database/index.db': await readFile(path.join(sandbox.work, 'index.db')) };
    const labels = { [imageLabels.database]: '/database/index.db' };
    serveBuilt(source, 'acme/database', 'v1', await makeImage({ files, labels }));
    const blocked = ['quay', 'docker', 'gcr', 'ghcr'].map((name) => `  - name: ${name}\\.io/\n`).join('');
    const items = `  operators:\n  - catalog: ${source.host}/acme/database:v1\n    full: true\n  blockedImages:\n${blocked}`;
    const resourcesOf = (workspace: string) =>
      readdir(path.join(sandbox.work, workspace, 'working-dir', 'cluster-resources'));
    expect(await mirror('database', items, destinationOf('database'), '--workspace=file://d')).toMatchObject({
      code: 0,
    });
    expect(await resourcesOf('d')).toEqual(['cs-database-v1.yaml', 'itms-oc-mirror.yaml']);
    const lock = await readFile(path.join(sandbox.work, 'd/working-dir/opmate.lock.json'), 'utf8');
    expect(JSON.parse(lock)).toMatchObject({ catalogs: [{ isDatabase: true, isWhole: true }] });
    const locked = ['--locked', '--workspace=file://d'];
    expect(await mirror('database', items, destinationOf('locked'), ...locked)).toMatchObject({ code: 0 });
    expect(await resourcesOf('d')).toEqual(['cs-database-v1.yaml', 'itms-oc-mirror.yaml']);
    expect(await mirror('database', items, 'file://db')).toMatchObject({ code: 0 });
    const from = ['mirror', '--from=db', destinationOf('disk'), '--workspace=file://f', ...insecure];
    expect(await sandbox.run(from)).toMatchObject({ code: 0 });
    expect(await resourcesOf('f')).toEqual(['cs-database-v1.yaml', 'itms-oc-mirror.yaml']);
  });

  it('selects a version that skips those in range, and reports it, in a plan and in a run', async () => {
    const version = (name: string, more: object = {}) => ({ name: `skip.v${name}`, ...more });
    const entries = [
      version('1.3.0', { replaces: 'skip.v1.1.0', skips: ['skip.v1.2.0'] }),
      version('1.2.0', { replaces: 'skip.v1.1.0' }),
      version('1.1.0'),
    ];
    const bundles = entries.map(({ name }) => {
      serveImage(source, 'acme/skip-bundle', name, smallImage({ text: name }));
      const value = { packageName: 'skip', version: name.slice('skip.v'.length) };
      const image = `${source.host}/acme/skip-bundle:${name}`;
      return {
        schema: 'olm.bundle',
        name,
        package: 'skip',
        image,
        properties: [{ type: 'olm.package', value }],
      };
    });
    const blobs = [
      { schema: 'olm.package', name: 'skip', defaultChannel: 'stable' },
      { schema: 'olm.channel', package: 'skip', name: 'stable', entries },
      ...bundles,
    ];
    const text = blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('');
    serveBuilt(source, 'acme/skipping', 'v1', await makeCatalogImage({ 'all.json': text }));
    const items = `  operators:\n  - catalog: ${source.host}/acme/skipping:v1\n    packages:\n    - name: skip\n      maxVersion: 1.2.0\n`;
    await sandbox.write({ 'skipping.yaml': config(items) });
    const said = 'also skip.v1.3.0 in stable: it skips "skip.v1.2.0"';
    const plan = await sandbox.run([
      ...['mirror', 'plan', '-c', 'skipping.yaml', destinationOf('skipping'), '-o', 'json', ...insecure],
    ]);
    expect(plan.stderr).toContain(said);
    expect(JSON.parse(plan.stdout)).toMatchObject({
      kept: [{ package: 'skip', channel: 'stable', bundle: 'skip.v1.3.0', reason: 'skips "skip.v1.2.0"' }],
    });
    const run = await mirror('skipping', items, destinationOf('skipping'), '--workspace=file://k');
    expect(run).toMatchObject({ code: 0 });
    expect(run.stderr).toContain(said);
    const rendered = await sandbox.run([
      ...['render', `${destinationOf('skipping').slice('docker://'.length)}/acme/skipping:v1`, '--use-http'],
    ]);
    for (const { name } of entries) expect(rendered.stdout).toContain(`"name": "${name}"`);
  });

  it('omits images of a skipped bundle unless others need them', async () => {
    source.on({ path: '/v2/acme/two-app/manifests/v1', times: 10, respond: { status: 404 } });
    const flags = ['--on-error=skip-bundle', '--workspace=file://s'];
    const run = (name: string, more: string) =>
      mirror(name, `${operators()}${more}`, destinationOf(name), ...flags);
    expect(await run('skipped', '')).toMatchObject({ code: 4 });
    expect(await repositoriesAt('skipped')).toEqual(['acme/index', 'acme/one-app', 'acme/one-bundle']);
    const lock = await readFile(path.join(sandbox.work, 's/working-dir/opmate.lock.json'), 'utf8');
    expect(lock).not.toContain('two-bundle');
    expect(await run('asked', additional('two-bundle'))).toMatchObject({ code: 4 });
    expect(await repositoriesAt('asked')).toContain('acme/two-bundle');
  });
});
