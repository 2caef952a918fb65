import { readFile, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { type OperatorSet, serveOperatorSet } from '../support/operator-set.js';
import { startRegistryProxy } from '../support/registry-proxy.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
let source: FaultRegistry;
let operators: OperatorSet;
let target: Registry;
let host = '';
let run = 0;
/** What the source does not have for now: part of a path. */
let missing: string | undefined;

beforeAll(async () => {
  source = await startFaultRegistry();
  operators = await serveOperatorSet(source);
  source.gate(({ path: url }) =>
    missing !== undefined && url.includes(missing) ? { status: 404 } : undefined,
  );
});
afterAll(() => source.close());
beforeEach(async () => {
  source.requests.length = 0;
  missing = undefined;
  target = await startRegistry({ directory: at(`target-${++run}`) });
  host = new URL(target.url).host;
  return () => target.close();
});

const configOf = (below = ''): string =>
  `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  operators:\n  - catalog: ${operators.catalog}\n${below}`;
const ociManifest = 'application/vnd.oci.image.manifest.v1+json';
const lastTwo = '    packages:\n    - name: widget\n      minVersion: 1.1.0\n';

async function mirror(name: string, ...args: string[]) {
  return sandbox.run(['mirror', '--config', `${name}.yaml`, '--use-http', ...args]);
}

const workspace = (name: string): string => `--workspace=file://${name}`;
const registry = (): string => `docker://${host}/ocm`;
const lockOf = (name: string): Promise<string> =>
  readFile(at(name, 'working-dir', 'opmate.lock.json'), 'utf8');
const tagsAt = async (repository: string): Promise<string[]> => {
  const answer = await fetch(`http://${host}/v2/${repository}/tags/list`);
  return answer.ok ? ((await answer.json()) as { tags: string[] }).tags : [];
};
/** Everything at the target, by tag, with its digest. */
async function contentsAt(): Promise<Record<string, string>> {
  const { repositories } = (await (await fetch(`http://${host}/v2/_catalog`)).json()) as {
    repositories: string[];
  };
  const found: Record<string, string> = {};
  for (const repository of repositories) {
    for (const tag of await tagsAt(repository)) {
      const answer = await fetch(`http://${host}/v2/${repository}/manifests/${tag}`, {
        headers: { accept: 'application/vnd.oci.image.manifest.v1+json' },
      });
      found[`${repository}:${tag}`] = answer.headers.get('docker-content-digest') ?? '';
    }
  }
  return found;
}
const requested = (part: string): number =>
  source.requests.filter(({ path: url }) => url.includes(part)).length;
/** Names and entries of the channel of a catalog at the target. */
async function channelAt(reference: string): Promise<string[]> {
  const result = await sandbox.run(['render', reference, '--use-http']);
  return [...result.stdout.matchAll(/"name": "(widget\.v[\d.]+)"/g)].map(([, name]) => name as string);
}

describe('opmate mirror --config', () => {
  it('copies the selection and a catalog of exactly that, and writes the cluster manifests', async () => {
    await sandbox.write({ 'range.yaml': configOf(lastTwo) });
    const result = await mirror('range', registry(), workspace('range'), '-o', 'text');
    expect(result).toMatchObject({ code: 0 });
    expect(result.stderr).toMatch(
      /info: wrote the lock to range\/working-dir\/opmate\.lock\.json\n(?:.*\n)*info: next: kubectl apply -f range\/working-dir\/cluster-resources\n$/,
    );
    const contents = await contentsAt();
    const tagOf = (name: string): string => (operators.digests.get(name) as string).replace(':', '-');
    expect(Object.keys(contents).sort()).toEqual(
      [
        `ocm/acme/app:${tagOf('acme/app:1.1.0')}`,
        `ocm/acme/app:${tagOf('acme/app:1.2.0')}`,
        'ocm/acme/bundle:v1.1.0',
        'ocm/acme/bundle:v1.2.0',
        'ocm/acme/index:v1',
        `ocm/acme/proxy:${tagOf('acme/proxy:1')}`,
      ].sort(),
    );
    expect(contents['ocm/acme/bundle:v1.2.0']).toBe(operators.digests.get('acme/bundle:1.2.0'));
    expect(result.stdout.trimEnd().split('\n')).toHaveLength(6);
    expect(new Set(await channelAt(`${host}/ocm/acme/index:v1`))).toEqual(
      new Set(['widget.v1.1.0', 'widget.v1.2.0']),
    );
    expect((await readdir(at('range', 'working-dir', 'cluster-resources'))).sort()).toEqual([
      'cc-index-v1.yaml',
      'cs-index-v1.yaml',
      'idms-oc-mirror.yaml',
      'itms-oc-mirror.yaml',
    ]);
    expect(await sandbox.leftovers()).toEqual([]);
    // What all images share is fetched once, the layers of the catalog aside, which are read first.
    const fetched = source.requests
      .filter(({ path: url, method }) => method === 'GET' && /(?<!index)\/blobs\//.test(url))
      .map(({ path: url }) => url.split('/').at(-1));
    expect(new Set(fetched).size).toBe(fetched.length);
  });

  it('fetches the layers of a catalog once, for reading, rebuilding and the next run', async () => {
    await sandbox.write({ 'layers.yaml': configOf(lastTwo) });
    const fetched = () => source.requests.filter(({ path: url }) => url.includes('/acme/index/blobs/'));
    const cache = ['--catalog-cache', 'layers'];
    const first = await mirror('layers', registry(), workspace('layers'), ...cache);
    expect(first).toMatchObject({ code: 0 });
    const layers = fetched().map(({ path: url }) => url);
    // Its configuration is read with the manifest each time.
    expect(layers.length - new Set(layers).size).toBeLessThanOrEqual(1);
    source.requests.length = 0;
    expect(await mirror('layers', registry(), workspace('layers'), ...cache)).toMatchObject({ code: 0 });
    expect(fetched().length).toBeLessThanOrEqual(1);
  });

  it('copies nothing on the second run, and produces the same with its lock', async () => {
    await sandbox.write({ 'lock.yaml': configOf(lastTwo) });
    await mirror('lock', registry(), workspace('lock'));
    const contents = await contentsAt();
    const lock = await lockOf('lock');
    source.requests.length = 0;
    const again = await mirror('lock', registry(), workspace('lock'));
    expect(again).toMatchObject({ code: 0 });
    expect(again.stderr).toContain('to copy: 0 blobs, 0 bytes');
    expect(await lockOf('lock')).toBe(lock);
    source.requests.length = 0;
    const locked = await mirror('lock', registry(), workspace('lock'), '--locked');
    expect(locked).toMatchObject({ code: 0 });
    expect(source.requests.filter(({ path: url }) => url !== '/v2/')).toEqual([]);
    expect(await contentsAt()).toEqual(contents);
  });

  it('copies missing images to another registry with the lock, including rebuilt catalogs', async () => {
    await sandbox.write({ 'two.yaml': configOf(lastTwo) });
    await mirror('two', registry(), workspace('two'));
    const contents = await contentsAt();
    const other = await startRegistry({ directory: at('other') });
    await target.close();
    target = other;
    host = new URL(other.url).host;
    const result = await mirror('two', registry(), workspace('two'), '--locked');
    expect(result).toMatchObject({ code: 0 });
    expect(await contentsAt()).toEqual(contents);
  });

  it('sends blobs shared with catalogs once, and mounts them in the catalog', async () => {
    await sandbox.write({ 'shared.yaml': configOf(lastTwo) });
    const proxy = await startRegistryProxy(host);
    try {
      let before = 0;
      for (const [place, ...flags] of [['first'], ['second', '--locked']] as const) {
        const result = await mirror(
          'shared',
          `docker://${proxy.host}/${place}`,
          workspace('shared'),
          ...flags,
        );
        expect(result).toMatchObject({ code: 0 });
        const sent = proxy.uploaded().slice(before);
        expect(sent.length).toBeGreaterThan(5);
        expect(new Set(sent).size).toBe(sent.length);
        before += sent.length;
      }
      // The catalog alone is sent to where its lowest layer is in the repositories of the other images.
      const repository = `http://${host}/v2/second/acme/index`;
      const { headers } = await fetch(`${repository}/manifests/v1`, { headers: { accept: ociManifest } });
      const digest = headers.get('docker-content-digest') ?? '';
      expect((await fetch(`${repository}/manifests/${digest}`, { method: 'DELETE' })).status).toBe(202);
      const again = await mirror(
        'shared',
        `docker://${proxy.host}/second`,
        workspace('shared'),
        '-o',
        'text',
      );
      expect(again).toMatchObject({ code: 0 });
      expect(again.stdout).toContain('/second/acme/index:v1\n');
      expect(proxy.uploaded()).toHaveLength(before);
    } finally {
      await proxy.close();
    }
  });

  it('rebuilds the catalog of the lock from its pinned digest after the tag has moved', async () => {
    await sandbox.write({ 'moved.yaml': configOf(lastTwo) });
    const planned = await sandbox.run([
      ...['mirror', 'plan', '-c', 'moved.yaml', '--use-http', registry(), workspace('moved')],
    ]);
    expect(planned).toMatchObject({ code: 0 });
    const lock = JSON.parse(await lockOf('moved')) as { images: { kind: string; digest?: string }[] };
    const [, other] = [...operators.digests].find(([name]) => name.startsWith('acme/proxy')) as [
      string,
      string,
    ];
    const url = `${source.origin}/v2/acme/proxy/manifests/${other}`;
    const moved = Buffer.from(await (await fetch(url)).arrayBuffer());
    source.on({
      path: '/v2/acme/index/manifests/v1',
      respond: { headers: { 'content-type': ociManifest }, body: moved },
      times: 100,
    });
    try {
      const result = await mirror('moved', registry(), workspace('moved'), '--locked');
      expect(result).toMatchObject({ code: 0 });
    } finally {
      const body = await fetch(
        `${source.origin}/v2/acme/index/manifests/${operators.digests.get('acme/index:v1') as string}`,
      );
      source.serveManifest('acme/index', 'v1', Buffer.from(await body.arrayBuffer()));
    }
    expect(lock.images.some(({ kind }) => kind === 'catalog')).toBe(true);
    expect(new Set(await channelAt(`${host}/ocm/acme/index:v1`))).toEqual(
      new Set(['widget.v1.1.0', 'widget.v1.2.0']),
    );
  });

  it('does not replace a catalog with a part of it', async () => {
    await sandbox.write({ 'whole.yaml': configOf('    full: true\n') });
    expect(await mirror('whole', `docker://${host}`, workspace('whole'))).toMatchObject({ code: 0 });
    const before = await contentsAt();
    await sandbox.write({ 'self.yaml': configOf(lastTwo).replace(source.host, host) });
    for (const command of [[], ['plan']]) {
      const args = ['--config', 'self.yaml', '--use-http', workspace('self'), `docker://${host}`];
      const result = await sandbox.run(['mirror', ...command, ...args]);
      expect(result).toMatchObject({ code: 1, stdout: '' });
      expect(result.stderr).toContain('acme/index:v1: the filtered catalog would replace the original');
    }
    expect(await contentsAt()).toEqual(before);
    expect(await mirror('self', `docker://${host}/below`, workspace('self'))).toMatchObject({ code: 0 });
  });

  it('refuses a lock of another configuration or of other flags, and names what a new lock omits', async () => {
    await sandbox.write({ 'drift.yaml': configOf(lastTwo) });
    await mirror('drift', registry(), workspace('drift'));
    const plan = `sha256:${'0'.repeat(64)}`;
    for (const [flags, problem, hint] of [
      [['--dependencies', 'add'], '--dependencies "add": the lock was made', 'use the same value, or mirror'],
      [['--platform', 'linux/s390x'], '--platform "linux/s390x": the lock was made', 'use the same value'],
      [
        ['--remove-signatures'],
        '--remove-signatures: the lock was made with signatures',
        'create a new lock',
      ],
      [['--plan', plan], `expected "${plan.slice(0, 20)}`, 'use the same lock on all machines'],
    ] as const) {
      const result = await mirror('drift', registry(), workspace('drift'), '--locked', ...flags);
      expect(result).toMatchObject({ code: 2, stdout: '' });
      expect(result.stderr).toContain(problem);
      expect(result.stderr).toContain(`\nhint: ${hint}`);
    }
    await sandbox.write({ 'drift.yaml': configOf() });
    const result = await mirror('drift', registry(), workspace('drift'), '--locked');
    expect(result).toMatchObject({ code: 2, stdout: '' });
    expect(result.stderr).toContain('differs from the configuration of the lock');
    expect(result.stderr).toContain('\nhint: mirror without --locked to create a new lock\n');
    const renewed = await mirror('drift', registry(), workspace('drift'));
    expect(renewed.stderr).toMatch(
      / of the previous lock (?:is|are) no longer selected, and stay in the registry:\n/,
    );
  });

  it('shows the exact bytes to copy, and copies nothing', async () => {
    await sandbox.write({ 'plan.yaml': configOf(lastTwo) });
    const result = await sandbox.run([
      ...[
        'mirror',
        'plan',
        registry(),
        '--config',
        'plan.yaml',
        '--use-http',
        workspace('plan'),
        '-o',
        'json',
      ],
    ]);
    expect(result).toMatchObject({ code: 0 });
    const plan = JSON.parse(result.stdout) as { images: number; blobs: number; presentBlobs: number };
    expect(plan).toMatchObject({ images: 6, presentBlobs: 0 });
    expect(await contentsAt()).toEqual({});
    expect(requested('/acme/app/blobs/') + requested('/acme/bundle/blobs/')).toBe(0);
    await mirror('plan', registry(), workspace('plan'), '--locked');
    expect(Object.keys(await contentsAt())).toHaveLength(6);
  });

  it.each(['skip-bundle', 'skip-image'])('goes on with --on-error %s, and tells', async (way) => {
    await sandbox.write({ 'skip.yaml': configOf() + '    full: true\n' });
    const gone = operators.digests.get('acme/app:1.1.0') as string;
    missing = gone;
    const result = await mirror('skip', registry(), workspace(way), `--on-error=${way}`);
    expect(result).toMatchObject({ code: 4 });
    expect(result.stderr).toContain(gone);
    const channel = new Set(await channelAt(`${host}/ocm/acme/index:v1`));
    expect(channel.has('widget.v1.1.0')).toBe(way === 'skip-image');
    const rendered = await sandbox.run(['render', `${host}/ocm/acme/index:v1`, '--use-http']);
    expect(rendered.stdout).not.toContain(gone);
    const valid = await sandbox.run(['validate', `${host}/ocm/acme/index:v1`, '--use-http']);
    expect(valid).toMatchObject({ code: 0 });
  });

  it('says of a plan that skips an image that it is not whole, and of its lock later', async () => {
    await sandbox.write({ 'part.yaml': configOf() + '    full: true\n' });
    const gone = operators.digests.get('acme/app:1.1.0') as string;
    missing = gone;
    const planned = await sandbox.run([
      ...['mirror', 'plan', '-c', 'part.yaml', registry(), workspace('part'), '--use-http'],
      ...['--on-error=skip-image', '-o', 'json'],
    ]);
    expect(planned).toMatchObject({ code: 4 });
    expect(planned.stderr).toContain('error: 1 image not in the plan\n');
    expect(planned.stderr).not.toContain('next:');
    const { failed } = JSON.parse(planned.stdout) as { failed: { source: string; error: string }[] };
    expect(failed).toMatchObject([{ source: expect.stringContaining(gone) as string }]);
    missing = undefined;
    const locked = await mirror('part', registry(), workspace('part'), '--locked');
    expect(locked).toMatchObject({ code: 0 });
    expect(await sandbox.run(['render', `${host}/ocm/acme/index:v1`, '--use-http'])).toMatchObject({
      stdout: expect.not.stringContaining(gone) as string,
    });
    expect(locked.stderr).toContain('images omitted, as they could not be read: 1 (mirror without --locked');
  });

  it('words the failure of a plan without images as that of a plan, without the flag that is set', async () => {
    const head = 'kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n';
    const images = `  additionalImages:\n  - name: ${source.host}/acme/none:v1\n  - name: ${source.host}/acme/none:v2\n`;
    await sandbox.write({ 'none.yaml': head + images });
    const args = ['-c', 'none.yaml', registry(), workspace('none'), '--use-http', '--on-error=skip-image'];
    const planned = await sandbox.run(['mirror', 'plan', ...args]);
    expect(planned).toMatchObject({ code: 1, stdout: '' });
    expect(planned.stderr).toContain(
      'error: nothing planned: 2 images failed, the lock stays unchanged\nhint: check the name and tag\n',
    );
    const mirrored = await sandbox.run(['mirror', ...args]);
    expect(mirrored.stderr).toContain(
      'error: nothing mirrored: 2 images failed, lock and cluster resources stay unchanged\nhint: check the name and tag\n',
    );
    const help = await sandbox.run(['mirror', 'plan', '--help']);
    expect(help.stdout).toContain('--on-error <action>');
  });

  it('stops at the first unavailable image, and tags no catalog', async () => {
    await sandbox.write({ 'stop.yaml': configOf() + '    full: true\n' });
    const gone = operators.digests.get('acme/app:1.1.0') as string;
    missing = gone;
    const result = await mirror('stop', registry(), workspace('stop'));
    expect(result).toMatchObject({ code: 1 });
    expect(result.stderr).toContain(gone);
    expect(await tagsAt('ocm/acme/index')).toEqual([]);
  });

  it('mirrors an image set through an archive without access to the source', async () => {
    await sandbox.write({ 'disk.yaml': configOf(lastTwo) });
    const direct = await mirror('disk', registry(), workspace('direct'));
    expect(direct).toMatchObject({ code: 0 });
    const contents = await contentsAt();
    const toDisk = await mirror('disk', 'file://carry');
    expect(toDisk).toMatchObject({ code: 0 });
    expect((await readdir(at('carry'))).sort()).toEqual([
      'mirror_000001.tar',
      'mirror_archive.json',
      'working-dir',
    ]);
    expect(await sandbox.run(['archive', 'verify', 'carry'])).toMatchObject({ code: 0 });
    const other = await startRegistry({ directory: at('gapped') });
    await target.close();
    target = other;
    host = new URL(other.url).host;
    source.requests.length = 0;
    const fromDisk = await sandbox.run(['mirror', '--from', 'file://carry', registry(), '--use-http']);
    expect(fromDisk).toMatchObject({ code: 0 });
    expect(source.requests).toEqual([]);
    expect(await contentsAt()).toEqual(contents);
    expect((await readdir(at('working-dir', 'cluster-resources'))).length).toBe(4);
  });

  it('applies an archive with a base only if the base is present', async () => {
    await sandbox.write({
      'first.yaml': configOf('    packages:\n    - name: widget\n'),
      'second.yaml': configOf(lastTwo),
    });
    await mirror('first', 'file://first');
    const second = await mirror('second', 'file://second', '--base', 'first');
    expect(second).toMatchObject({ code: 0 });
    const from = (...names: string[]) =>
      sandbox.run([
        'mirror',
        ...names.flatMap((name) => ['--from', `file://${name}`]),
        registry(),
        '--use-http',
      ]);
    const alone = await from('second');
    expect(alone).toMatchObject({ code: 1 });
    const { id } = JSON.parse(await readFile(at('first', 'mirror_archive.json'), 'utf8')) as { id: string };
    expect(alone.stderr).toContain(id);
    expect(await contentsAt()).toEqual({});
    expect(await from('second', 'first')).toMatchObject({ code: 0 });
    const whole = await contentsAt();
    await target.close();
    target = await startRegistry({ directory: at('chain') });
    host = new URL(target.url).host;
    expect(await from('first')).toMatchObject({ code: 0 });
    expect(await from('second')).toMatchObject({ code: 0 });
    expect(await contentsAt()).toMatchObject(whole);
  });

  it('shares a locked plan among machines, the last one copies the catalog', async () => {
    await sandbox.write({ 'shard.yaml': configOf(lastTwo) });
    await mirror('shard', registry(), workspace('shard'));
    const contents = await contentsAt();
    await target.close();
    await rm(at(`target-${run}`), { recursive: true });
    target = await startRegistry({ directory: at('sharded') });
    host = new URL(target.url).host;
    const seen: string[] = [];
    for (const index of [2, 0, 1]) {
      expect(await tagsAt('ocm/acme/index')).toEqual([]);
      const result = await mirror(
        'shard',
        registry(),
        workspace('shard'),
        '--locked',
        `--shard=${index}/3`,
        // One after the other: what others have not copied does not come.
        '--shard-wait=0s',
        '-o',
        'text',
      );
      expect(result).toMatchObject({ code: 0 });
      seen.push(
        ...result.stdout
          .trimEnd()
          .split('\n')
          .filter((line) => line !== ''),
      );
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(await contentsAt()).toEqual(contents);
  });
});
