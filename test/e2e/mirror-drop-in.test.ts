import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Registry, startRegistry } from '../../src/serve/registry.js';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { serveImage, smallImage } from '../support/images.js';
import { makeCatalogImage, serveBuilt } from './images.js';

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

describe('mirror, where oc-mirror is replaced', () => {
  it('names every image that is missing, with file and line, and copies nothing', async () => {
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
    expect(await repositoriesAt('missing')).toEqual([]);
  });

  it('asks the target for access before it reads a source', async () => {
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

  it('mirrors from an archive what a part of its configuration asks for', async () => {
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
    const less = await from('less', `${operators()}    packages:\n    - name: one\n`);
    expect(less.stderr).toContain('the archive also holds two.v1.0.0, which its catalog image names');
    expect([...(await repositoriesAt('more')), ...(await repositoriesAt('less'))]).toEqual([]);
    expect(source.requests).toEqual([]);
  });

  it('leaves out all images of a bundle that is skipped, but not what else asks for them', async () => {
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
