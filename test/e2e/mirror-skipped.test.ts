/** What a run skips, or its source lost, stays what it was at the target. */
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { type OperatorSet, serveCatalogImage, serveOperatorSet } from '../support/operator-set.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
let source: FaultRegistry;
let operators: OperatorSet;
let target: Registry;
let host = '';
let run = 0;
/** Parts of paths that the source answers with this status for now. */
let faults: Record<string, number> = {};

beforeAll(async () => {
  source = await startFaultRegistry();
  operators = await serveOperatorSet(source);
  serveSignature('acme/app', digestOf('acme/app:1.2.0'));
  source.gate(({ path: url }) => {
    const [, status] = Object.entries(faults).find(([part]) => url.includes(part)) ?? [];
    return status === undefined ? undefined : { status };
  });
});
afterAll(() => source.close());
beforeEach(async () => {
  faults = {};
  target = await startRegistry({ directory: at(`target-${++run}`) });
  host = new URL(target.url).host;
  return () => target.close();
});

/** Serves something under the tag of a signature; it is not verified. */
function serveSignature(repository: string, digest: string): void {
  const describe = (mediaType: string, text: string) => {
    const own = source.serveBlob(repository, text);
    return { mediaType, digest: own, size: text.length };
  };
  const manifest = {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: describe('application/vnd.oci.image.config.v1+json', '{}'),
    layers: [describe('application/vnd.dev.cosign.simplesigning.v1+json', '{"critical":{}}')],
  };
  source.serveManifest(repository, `${digest.replace(':', '-')}.sig`, JSON.stringify(manifest));
}

const registry = (): string => `docker://${host}/ocm`;
const digestOf = (name: string): string => operators.digests.get(name) as string;
const configOf = (catalog = operators.catalog): string =>
  `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  operators:\n  - catalog: ${catalog}\n    full: true\n`;

async function mirror(name: string, ...args: string[]) {
  const common = ['--config', `${name}.yaml`, '--workspace', `file://${name}`, '--use-http'];
  return sandbox.run(['mirror', ...common, ...args, registry()]);
}

interface Lock {
  images: { repository: string; tag: string; digest: string; isHeld?: boolean }[];
  catalogs: { tag: string; packages: { bundles: { name: string }[] }[] }[];
}
const lockText = (name: string): Promise<string> =>
  readFile(at(name, 'working-dir', 'opmate.lock.json'), 'utf8');
const lockOf = async (name: string): Promise<Lock> => JSON.parse(await lockText(name)) as Lock;
async function resourcesOf(name: string): Promise<Record<string, string>> {
  const directory = at(name, 'working-dir', 'cluster-resources');
  const files = await readdir(directory);
  const texts = files.map(
    async (file) => [file, await readFile(path.join(directory, file), 'utf8')] as const,
  );
  return Object.fromEntries(await Promise.all(texts));
}
async function hasTag(repository: string, tag: string): Promise<boolean> {
  return (await fetch(`http://${host}/v2/${repository}/manifests/${tag}`, { method: 'HEAD' })).ok;
}
/** Lists what of the set may be deleted while the lock is kept. */
async function listDeletable(name: string): Promise<string> {
  const config = (await readFile(at(`${name}.yaml`), 'utf8'))
    .replace('ImageSetConfiguration', 'DeleteImageSetConfiguration')
    .replace('mirror:\n', 'delete:\n');
  await sandbox.write({ [`delete-${name}.yaml`]: config });
  const args = [
    'mirror',
    'delete',
    '--generate',
    '-c',
    `delete-${name}.yaml`,
    '--workspace',
    `file://${name}`,
  ];
  const keep = ['--keep', `${name}/working-dir/opmate.lock.json`, '--use-http', registry()];
  expect(await sandbox.run([...args, ...keep])).toMatchObject({ code: 0 });
  return readFile(at(name, 'working-dir', 'delete', 'delete-images.yaml'), 'utf8');
}

describe('mirror -c, after the source lost images', () => {
  it.each([
    ['stop', '404', 404],
    ['skip-bundle', '404', 404],
    ['skip-image', '403', 403],
  ])('takes them from the target with --on-error %s and status %s', async (way, _status, status) => {
    const name = `lost-${way}`;
    await sandbox.write({ [`${name}.yaml`]: configOf() });
    expect(await mirror(name)).toMatchObject({ code: 0 });
    const [lock, resources] = [await lockText(name), await resourcesOf(name)];
    expect(lock).toContain('.sig"');
    faults = {
      [digestOf('acme/app:1.2.0')]: status,
      ...(status === 404 && { 'bundle/manifests/v1.2.0': 404 }),
    };
    const again = await mirror(name, `--on-error=${way}`);
    expect(again).toMatchObject({ code: 0 });
    expect(again.stderr).toContain('unavailable at the source, kept as mirrored before: ');
    expect(await lockText(name)).toBe(lock);
    expect(await resourcesOf(name)).toEqual(resources);
  });

  it('gives an image by digest another tag from the copy at the target', async () => {
    await sandbox.write({ 'tags.yaml': configOf() });
    expect(await mirror('tags')).toMatchObject({ code: 0 });
    const digest = digestOf('acme/proxy:1');
    await fetch(`http://${host}/v2/ocm/acme/proxy/manifests/${digest.replace(':', '-')}`, {
      method: 'DELETE',
    });
    expect(await hasTag('ocm/acme/proxy', digest)).toBe(true);
    faults = { [digest]: 404 };
    expect(await mirror('tags', '--on-error=skip-bundle')).toMatchObject({ code: 0 });
    expect(await hasTag('ocm/acme/proxy', digest.replace(':', '-'))).toBe(true);
  });
});

describe('mirror -c', () => {
  it('reports a full registry as one error, and mirrors the rest of the set when it has space again', async () => {
    await target.close();
    target = await startRegistry({ directory: at(`target-${run}`), maxSize: 64 });
    host = new URL(target.url).host;
    await sandbox.write({ 'full.yaml': configOf() });
    for (const mode of ['stop', 'skip-image']) {
      const result = await mirror('full', `--on-error=${mode}`);
      expect(result).toMatchObject({ code: 1 });
      const errors = result.stderr.split('\n').filter((line) => /^error: .*push failed/.test(line));
      expect({ mode, errors }).toEqual({ mode, errors: [expect.stringMatching(/storage|space/) as string] });
      expect(result.stderr).toContain(`free space at ${host}`);
      await expect(lockText('full')).rejects.toThrow('ENOENT');
    }
    const skipped = await mirror('full', '--on-error=skip-image');
    expect(skipped.stderr).toMatch(/^warn: .* for \d further images: /m);
    await target.close();
    target = await startRegistry({ directory: at(`target-${run}`) });
    host = new URL(target.url).host;
    expect(await mirror('full')).toMatchObject({ code: 0 });
  });

  it('reports catalogs with one object name before any request, with their lines', async () => {
    const catalogs = ['one/acme/index:v1', 'two/acme/index:v1'].map(
      (name) => `  - catalog: ${source.host}/${name}\n`,
    );
    const head =
      'kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  operators:\n';
    await sandbox.write({ 'names.yaml': `${head}${catalogs.join('')}` });
    source.requests.length = 0;
    const result = await mirror('names');
    expect(result).toMatchObject({ code: 1 });
    expect(result.stderr).toContain('names.yaml:6:5: same object name cs-index-v1 for ');
    expect(result.stderr).toContain('on line 5');
    expect(source.requests).toEqual([]);
  });
});

describe('mirror --locked --on-error skip-image', () => {
  it('copies what is available, and catalogs when nothing of theirs is missing', async () => {
    const other = await serveCatalogImage(source, 'acme/other', [
      { schema: 'olm.package', name: 'gadget', defaultChannel: 'stable' },
      { schema: 'olm.channel', package: 'gadget', name: 'stable', entries: [{ name: 'gadget.v1.0.0' }] },
      {
        ...{ schema: 'olm.bundle', name: 'gadget.v1.0.0', package: 'gadget' },
        image: `${source.host}/acme/bundle:v1.0.0`,
        properties: [{ type: 'olm.package', value: { packageName: 'gadget', version: '1.0.0' } }],
      },
    ]);
    const catalogs = `${configOf()}  - catalog: ${source.host}/acme/other@${other}\n    targetTag: v1\n`;
    await sandbox.write({ 'locked.yaml': catalogs });
    const plan = ['mirror', 'plan', '-c', 'locked.yaml', '--workspace', 'file://locked', '--use-http'];
    expect(await sandbox.run([...plan, registry()])).toMatchObject({ code: 0 });
    const before = await lockText('locked');
    // The manifest, not only a blob, is gone.
    faults = { [digestOf('acme/app:1.2.0')]: 404 };
    const stopped = await mirror('locked', '--locked');
    expect(stopped).toMatchObject({ code: 1 });
    const result = await mirror('locked', '--locked', '--on-error=skip-image', '-o', 'json');
    expect(result).toMatchObject({ code: 4 });
    expect(result.stderr).toContain(
      `${host}/ocm/acme/index:v1: not copied: 1 image of it could not be copied`,
    );
    expect(JSON.parse(result.stdout)).toMatchObject({
      failed: expect.arrayContaining([
        expect.objectContaining({ target: `${host}/ocm/acme/index:v1` }),
      ]) as object,
    });
    expect(await hasTag('ocm/acme/bundle', 'v1.2.0')).toBe(true);
    expect(await hasTag('ocm/acme/other', 'v1')).toBe(true);
    expect(await hasTag('ocm/acme/index', 'v1')).toBe(false);
    const names = Object.keys(await resourcesOf('locked')).filter((name) => name.startsWith('cs-'));
    expect(names).toEqual(['cs-other-v1.yaml']);
    expect(await lockText('locked')).toBe(before);
    faults = {};
    expect(await mirror('locked', '--locked', '--on-error=skip-image')).toMatchObject({ code: 0 });
    expect(await hasTag('ocm/acme/index', 'v1')).toBe(true);
  });
});

describe('mirror -c, after a selection became smaller', () => {
  it('names the images, keeps the lock that has them, and lists them for deletion', async () => {
    await sandbox.write({ 'less.yaml': configOf() });
    expect(await mirror('less')).toMatchObject({ code: 0 });
    const first = await lockText('less');
    const narrow =
      '    packages:\n    - name: widget\n      channels:\n      - name: stable\n        minVersion: 1.1.0\n';
    await sandbox.write({ 'less.yaml': configOf().replace('    full: true\n', narrow) });
    const second = await mirror('less', '-o', 'json');
    expect(second).toMatchObject({ code: 0 });
    const app = `acme/app:${digestOf('acme/app:1.0.0').replace(':', '-')}`;
    const { removedImages } = JSON.parse(second.stdout) as { removedImages: string[] };
    expect(removedImages).toEqual([app, 'acme/bundle:v1.0.0']);
    const previous = 'less/working-dir/opmate.lock.previous.json';
    expect(await readFile(at(previous), 'utf8')).toBe(first);
    const command = `opmate mirror delete --generate --previous ${previous} --workspace file://less`;
    expect(second.stderr).toContain(`to delete them: ${command} --use-http ${registry()}\n`);

    // A further run keeps what is not deleted yet.
    await sandbox.write({
      'less.yaml': configOf().replace('    full: true\n', narrow.replace('1.1.0', '1.2.0')),
    });
    expect(await mirror('less')).toMatchObject({ code: 0 });
    const generated = await sandbox.run([...command.split(' ').slice(1), '--use-http', registry()]);
    expect(generated).toMatchObject({ code: 0 });
    const list = await readFile(at('less', 'working-dir', 'delete', 'delete-images.yaml'), 'utf8');
    const references = [...list.matchAll(/imageReference: docker:\/\/[^/]+\/ocm\/(.*)\n/g)].map(
      ([, name]) => name,
    );
    const newer = `acme/app:${digestOf('acme/app:1.1.0').replace(':', '-')}`;
    expect(references).toEqual([...[app, newer].sort(), 'acme/bundle:v1.0.0', 'acme/bundle:v1.1.0']);
    const next = /next: opmate (mirror delete --delete-yaml-file .*)\n/.exec(generated.stderr)?.[1] ?? '';
    expect(next).toContain('--keep less/working-dir/opmate.lock.json');
    expect(await sandbox.run(next.split(' '))).toMatchObject({ code: 0 });
    expect(await hasTag('ocm/acme/bundle', 'v1.0.0')).toBe(false);
    expect(await hasTag('ocm/acme/bundle', 'v1.2.0')).toBe(true);
  });
});

describe('mirror -c --on-error, after an earlier run', () => {
  it('keeps skipped images and those of skipped bundles in the lock, and does not propose to delete them', async () => {
    await sandbox.write({ 'held.yaml': configOf() });
    expect(await mirror('held')).toMatchObject({ code: 0 });
    const resources = await resourcesOf('held');
    // The tag is refused, so nobody knows which image it has now.
    faults = { 'bundle/manifests/v1.2.0': 403 };
    const again = await mirror('held', '--on-error=skip-bundle');
    expect(again).toMatchObject({ code: 4 });
    expect(again.stderr).not.toContain('no longer selected');
    const { images, catalogs } = await lockOf('held');
    const held = images.filter(({ isHeld }) => isHeld).map(({ repository, tag }) => `${repository}:${tag}`);
    const app = `acme/app:${digestOf('acme/app:1.2.0').replace(':', '-')}`;
    expect(held.sort()).toEqual([`${app}.sig`, app, 'acme/bundle:v1.2.0'].sort());
    expect(catalogs[0]?.packages[0]?.bundles.map(({ name }) => name)).not.toContain('widget.v1.2.0');
    expect(await resourcesOf('held')).toEqual(resources);
    faults = {};
    expect(await listDeletable('held')).not.toContain('acme/app');
    // Held images are no part of what the lock copies.
    const status = await sandbox.run([
      'mirror',
      'status',
      registry(),
      '--workspace',
      'file://held',
      '--use-http',
    ]);
    expect(status).toMatchObject({ code: 0 });
    const whole = await mirror('held', '--on-error=skip-bundle');
    expect(whole).toMatchObject({ code: 0 });
    expect((await lockOf('held')).images.filter(({ isHeld }) => isHeld)).toEqual([]);
  });

  it('leaves held images of another target out of cluster resources', async () => {
    await sandbox.write({ 'moved.yaml': configOf() });
    expect(await mirror('moved')).toMatchObject({ code: 0 });
    faults = { 'bundle/manifests/v1.2.0': 403 };
    expect(await mirror('moved', '--on-error=skip-bundle')).toMatchObject({ code: 4 });
    faults = {};
    const other = await startRegistry({ directory: at('moved-target') });
    const place = `docker://${new URL(other.url).host}/ocm`;
    const args = ['mirror', '-c', 'moved.yaml', '--locked', '--workspace', 'file://moved', '--use-http'];
    const locked = await sandbox.run([...args, place]).finally(() => other.close());
    expect(locked.stderr).not.toContain('v1.2.0');
  });

  it.each(['skip-bundle', 'skip-image'])(
    'fails if %s leaves nothing, and changes no result of the last run',
    async (way) => {
      const name = `nothing-${way}`;
      await sandbox.write({ [`${name}.yaml`]: configOf() });
      expect(await mirror(name)).toMatchObject({ code: 0 });
      const [lock, resources] = [await lockText(name), await resourcesOf(name)];
      await target.close();
      target = await startRegistry({ directory: at(`empty-${way}`) });
      host = new URL(target.url).host;
      faults = { '/acme/bundle/': 404, '/acme/app/': 404, '/acme/proxy/': 404 };
      const failed = await mirror(name, `--on-error=${way}`, '-o', 'json');
      expect(failed).toMatchObject({ code: 1 });
      const report = JSON.parse(failed.stdout) as {
        images: object[];
        failed: object[];
        removedBundles: string[];
      };
      expect(report.images).toEqual([]);
      expect(report.failed.length).toBeGreaterThan(6);
      expect(report.removedBundles).toEqual(['widget.v1.0.0', 'widget.v1.1.0', 'widget.v1.2.0']);
      expect(failed.stderr).toContain('lock and cluster resources stay unchanged');
      expect(await lockText(name)).toBe(lock);
      expect(await resourcesOf(name)).toEqual(resources);
    },
  );

  it('tags a catalog by digest with the digest of what is left of it', async () => {
    const [, repository] = /^(.+):v1$/.exec(operators.catalog) as unknown as [string, string];
    await sandbox.write({ 'pinned.yaml': configOf(`${repository}@${digestOf('acme/index:v1')}`) });
    faults = { [digestOf('acme/app:1.1.0')]: 404 };
    expect(await mirror('pinned', '--on-error=skip-bundle')).toMatchObject({ code: 4 });
    const { catalogs, images } = await lockOf('pinned');
    const tag = catalogs[0]?.tag as string;
    expect(tag).not.toBe(digestOf('acme/index:v1').replace(':', '-'));
    expect(images.find(({ repository: of }) => of === 'acme/index')?.digest.replace(':', '-')).toBe(tag);
    expect(await hasTag('ocm/acme/index', tag)).toBe(true);
    const sources = Object.entries(await resourcesOf('pinned')).filter(([file]) => /^c[cs]-/.test(file));
    expect(sources).toHaveLength(2);
    for (const [, text] of sources) expect(text).toContain(`${host}/ocm/acme/index:${tag}`);
  });
});
