/** Mirrors that keep themselves: generations of the lock, pruning, retries and the audit trail. */
import { readFile, readdir, rename } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readRecordedRuns } from '../../src/mirror/history/audit-trail.js';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { useSandbox } from '../support/command-line.js';
import { serveImage, smallImage } from '../support/images.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { type OperatorSet, serveOperatorSet } from '../support/operator-set.js';
import { startRegistryProxy } from '../support/registry-proxy.js';
import { busy } from '../support/waiting.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
let source: FaultRegistry;
let operators: OperatorSet;
let target: Registry;
let host = '';
let run = 0;
/** Part of a path that the source does not have for now. */
let gone: string | undefined;
/** Part of a path that the source does not serve for now, so that commands wait. */
let delayed: string | undefined;

beforeAll(async () => {
  source = await startFaultRegistry();
  operators = await serveOperatorSet(source);
  source.gate(({ path: url }) => {
    if (gone !== undefined && url.includes(gone)) return { status: 404 };
    return delayed !== undefined && url.includes(delayed) ? { status: 503 } : undefined;
  });
  const select = (versions: string): string =>
    `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  operators:\n  - catalog: ${operators.catalog}\n    packages:\n    - name: widget\n${versions}`;
  await sandbox.write({ 'all.yaml': select('      minVersion: 1.0.0\n'), 'newest.yaml': select('') });
});
afterAll(() => source.close());
beforeEach(async () => {
  gone = delayed = undefined;
  target = await startRegistry({ directory: at(`target-${++run}`) });
  host = new URL(target.url).host;
  return () => target.close();
});

const workspace = (): string => `space-${run}`;
const mirror = (config: string, ...args: string[]) =>
  sandbox.run([
    ...['mirror', '-c', config, '--workspace', `file://${workspace()}`, '--use-http'],
    ...[...args, `docker://${host}/m`],
  ]);
/** Kills a mirror command once the trail has an event of it. Returns the trail of the command. */
async function auditOfKilled(event: string, config: string, ...args: string[]) {
  const before = (await audit().catch(() => [])).length;
  const running = sandbox.start([
    ...['mirror', ...(config === '' ? [] : ['-c', config]), '--workspace', `file://${workspace()}`],
    ...['--use-http', ...args],
  ]);
  const own = async () => (await audit().catch(() => [])).slice(before);
  await expect.poll(async () => (await own()).map((entry) => entry['event']), busy).toContain(event);
  running.child.kill('SIGKILL');
  await running.result;
  return own();
}
const digestOf = (name: string): string => operators.digests.get(name) as string;
const tagOf = (name: string): string => digestOf(name).replace(':', '-');
async function tagsOf(repository: string): Promise<string[]> {
  const { tags } = (await (await fetch(`http://${host}/v2/m/${repository}/tags/list`)).json()) as {
    tags: string[] | null;
  };
  return (tags ?? []).sort();
}
/** Returns the digest of the last layer of an image at the source. */
async function layerOf(repository: string, digest: string): Promise<string> {
  const url = `http://${source.host}/v2/${repository}/manifests/${digest}`;
  const { layers } = (await (await fetch(url)).json()) as { layers: { digest: string }[] };
  return layers.at(-1)?.digest ?? '';
}
const generations = async (): Promise<string[]> =>
  (await readdir(at(workspace(), 'working-dir', 'generations'))).sort();
async function audit(): Promise<Record<string, unknown>[]> {
  const text = await readFile(at(workspace(), 'working-dir', 'audit.jsonl'), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}
/** Makes the generations of the workspace older by a year. */
async function age(): Promise<void> {
  const directory = at(workspace(), 'working-dir', 'generations');
  for (const name of await readdir(directory))
    await rename(
      path.join(directory, name),
      path.join(
        directory,
        name.replace(/-(\d{4})/, (_, year: string) => `-${Number(year) - 1}`),
      ),
    );
}

describe('mirror -c', () => {
  it('keeps locks by generation, and audits what it copies', async () => {
    expect(await mirror('all.yaml')).toMatchObject({ code: 0 });
    expect(await mirror('all.yaml')).toMatchObject({ code: 0 });
    expect(await generations()).toEqual([expect.stringMatching(/^000001-\d{8}T\d{6}Z\.lock\.json$/)]);
    expect(await mirror('newest.yaml')).toMatchObject({ code: 0 });
    expect(await generations()).toHaveLength(2);
    const entries = await audit();
    const copied = entries.filter(({ event }) => event === 'copied');
    expect(new Set(copied.map(({ image }) => image)).size).toBe(8 + 1 - 1);
    expect(copied).toContainEqual({
      ...{ time: expect.any(String) as string, run: entries[0]?.['run'], event: 'copied' },
      image: `${host}/m/acme/app:${tagOf('acme/app:1.2.0')}`,
      digest: digestOf('acme/app:1.2.0'),
      from: `${source.host}/acme/app@${digestOf('acme/app:1.2.0')}`,
    });
    const ended = entries.filter(({ event }) => event === 'ended');
    expect(ended.map(({ result, failed }) => [result, failed])).toEqual(Array(3).fill(['done', 0]));
  });

  it('prunes images that no lock of the time selects, once approved', async () => {
    await mirror('all.yaml');
    const removed = ['acme/app:1.0.0', 'acme/app:1.1.0'];
    // Within the time, all that was selected stays.
    const recent = await mirror('newest.yaml', '--prune=30d', '--yes');
    expect(recent).toMatchObject({ code: 0 });
    expect(recent.stderr).toContain('nothing to prune');
    expect(await tagsOf('acme/app')).toHaveLength(3);
    await age();
    const asked = await mirror('newest.yaml', '--prune=30d');
    expect(asked).toMatchObject({ code: 1 });
    expect(asked.stderr).toContain('to prune: 4 images, selected by no lock since');
    for (const name of removed) expect(asked.stderr).toContain(`${host}/m/acme/app:${tagOf(name)}`);
    expect(asked.stderr).toContain('no terminal to confirm');
    expect(await tagsOf('acme/app')).toHaveLength(3);
    const pruned = await mirror('newest.yaml', '--prune=after 30d', '--yes');
    expect(pruned).toMatchObject({ code: 0 });
    expect(pruned.stderr).toContain('4 images pruned');
    expect(await tagsOf('acme/app')).toEqual([tagOf('acme/app:1.2.0')]);
    expect(await tagsOf('acme/bundle')).toEqual(['v1.2.0']);
    expect(await tagsOf('acme/proxy')).toEqual([tagOf('acme/proxy:1')]);
    expect(await tagsOf('acme/index')).toEqual(['v1']);
    expect(await generations()).toHaveLength(1);
    const deleted = (await audit()).filter(({ event }) => event === 'deleted');
    expect(deleted.map(({ digest }) => digest)).toEqual(expect.arrayContaining(removed.map(digestOf)));
    expect((await mirror('newest.yaml', '--prune', '--yes')).stderr).toContain('nothing to prune');
  });

  it('keeps a pruned tag that has another image, and an image with another tag', async () => {
    await mirror('all.yaml');
    const type = 'application/vnd.oci.image.manifest.v1+json';
    const url = (tag: string): string => `http://${host}/v2/m/acme/bundle/manifests/${tag}`;
    const bytesOf = async (tag: string) => new Uint8Array(await (await fetch(url(tag))).arrayBuffer());
    const put = (tag: string, body: Uint8Array<ArrayBuffer>) =>
      fetch(url(tag), { method: 'PUT', headers: { 'content-type': type }, body });
    const newest = await bytesOf('v1.2.0');
    expect((await put('mine', await bytesOf('v1.1.0'))).status).toBe(201);
    expect((await put('v1.0.0', newest)).status).toBe(201);
    const pruned = await mirror('newest.yaml', '--prune', '--yes');
    expect(pruned).toMatchObject({ code: 4 });
    expect(pruned.stderr).toMatch(/acme\/bundle:v1\.0\.0: kept, the tag has another image now/);
    expect(pruned.stderr).toMatch(/acme\/bundle:v1\.1\.0: not deleted, tag mine has it too/);
    expect(await tagsOf('acme/bundle')).toEqual(['mine', 'v1.0.0', 'v1.1.0', 'v1.2.0']);
    // They are tried again.
    expect(await generations()).toHaveLength(2);
  });

  it('retries a run that failed for an image, and nothing else', async () => {
    gone = digestOf('acme/app:1.1.0');
    const partly = await mirror('all.yaml', '--on-error=skip-image', '--retry-failed');
    expect(partly).toMatchObject({ code: 4 });
    expect(await audit()).toContainEqual(
      expect.objectContaining({
        ...{ event: 'failed', from: `${source.host}/acme/app@${gone}` },
        problem: expect.stringContaining('not found') as string,
      }),
    );
    const next = `info: next: opmate mirror -c all.yaml --workspace file://${workspace()} --on-error skip-image --retry-failed --use-http docker://${host}/m\n`;
    expect(partly.stderr).toContain(next);
    // What failed again is tried again, and is counted if that stops the run.
    expect(await mirror('all.yaml', '--retry-failed')).toMatchObject({ code: 1 });
    expect((await audit()).at(-1)).toMatchObject({ event: 'ended', result: 'failed', failed: 1 });
    expect(await mirror('all.yaml', '--on-error=skip-image')).toMatchObject({ code: 4 });
    expect(await mirror('all.yaml', '--on-error=skip-image', '--retry-failed')).toMatchObject({ code: 4 });
    const failedDigest = gone;
    gone = undefined;
    const before = source.requests.length;
    const retried = await mirror('all.yaml', '--retry-failed');
    expect(retried).toMatchObject({ code: 0 });
    expect(await tagsOf('acme/app')).toHaveLength(3);
    // Of images that the last run mirrored nothing is read, and the catalog is the one that it read.
    const images = source.requests.slice(before).map(({ path: url }) => url.replace(/\?.*/, ''));
    expect(images).toContain(`/v2/acme/app/manifests/${failedDigest}`);
    expect(images.filter((url) => /\/acme\/(bundle|proxy)\//.test(url))).toEqual([]);
    expect(images.filter((url) => url.includes('/manifests/v1'))).toEqual([]);
    // The result is that of a whole run.
    const lock = () => readFile(at(workspace(), 'working-dir', 'opmate.lock.json'), 'utf8');
    const retriedLock = await lock();
    const resources = () => readdir(at(workspace(), 'working-dir', 'cluster-resources'));
    const retriedResources = await resources();
    expect(await mirror('all.yaml')).toMatchObject({ code: 0 });
    expect([await lock(), await resources()]).toEqual([retriedLock, retriedResources]);
    const requests = source.requests.length;
    const again = await mirror('all.yaml', '--retry-failed');
    expect(again).toMatchObject({ code: 0 });
    expect(again.stderr).toContain('failed for no image: nothing to retry');
    expect(source.requests).toHaveLength(requests);
  });

  it.each(['skip-image', 'skip-bundle'])(
    'retries a whole catalog that lacks what %s left out',
    async (onError) => {
      const whole = `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  operators:\n  - catalog: ${operators.catalog}\n    full: true\n`;
      await sandbox.write({ 'whole.yaml': whole });
      const digestAtTarget = async () =>
        (await fetch(`http://${host}/v2/m/acme/index/manifests/v1`)).headers.get('docker-content-digest');
      gone = digestOf('acme/app:1.1.0');
      expect(await mirror('whole.yaml', `--on-error=${onError}`)).toMatchObject({ code: 4 });
      expect(await digestAtTarget()).not.toBe(digestOf('acme/index:v1'));
      gone = undefined;
      expect(await mirror('whole.yaml', '--retry-failed')).toMatchObject({ code: 0 });
      expect(await digestAtTarget()).toBe(digestOf('acme/index:v1'));
      expect(await tagsOf('acme/app')).toHaveLength(3);
    },
  );

  it('retries a signature that failed, of an image that did not', async () => {
    const signature = `${tagOf('acme/app:1.2.0')}.sig`;
    serveImage(source, 'acme/app', signature, smallImage({ text: 'retried signature' }));
    gone = `/blobs/${await layerOf('acme/app', signature)}`;
    expect(await mirror('all.yaml', '--on-error=skip-image')).toMatchObject({ code: 4 });
    expect(await tagsOf('acme/app')).not.toContain(signature);
    gone = undefined;
    const before = source.requests.length;
    expect(await mirror('all.yaml', '--retry-failed')).toMatchObject({ code: 0 });
    expect(await tagsOf('acme/app')).toContain(signature);
    const images = source.requests.slice(before).map(({ path: url }) => url);
    expect(images.filter((url) => /\/acme\/(bundle|proxy)\//.test(url))).toEqual([]);
  });

  it('audits a first run that fails, and the images that it copied', async () => {
    gone = digestOf('acme/app:1.1.0');
    expect(await mirror('all.yaml')).toMatchObject({ code: 1 });
    const [started, ended] = await audit();
    expect(started).toMatchObject({ event: 'started', task: 'mirror', configuration: 'all.yaml' });
    expect(ended).toMatchObject({ event: 'ended', result: 'failed', run: started?.['run'], images: 0 });
    expect(ended?.['problem']).toContain('not found');
    // The blob of one operand is lost after its manifest was read.
    gone = `/blobs/${await layerOf('acme/app', digestOf('acme/app:1.2.0'))}`;
    expect(await mirror('all.yaml', '--max-per-registry=1')).toMatchObject({ code: 1 });
    const entries = (await audit()).slice(2);
    const copied = entries.filter(({ event }) => event === 'copied').map(({ digest }) => digest);
    expect(copied).toContain(digestOf('acme/app:1.0.0'));
    expect(copied).not.toContain(digestOf('acme/app:1.2.0'));
    expect(entries.at(-1)).toMatchObject({ event: 'ended', result: 'failed', images: copied.length });
  });

  it.each(['docker', 'file'])('audits a first run to %s:// that is killed', async (transport) => {
    delayed = `/blobs/${await layerOf('acme/app', digestOf('acme/app:1.2.0'))}`;
    const to = transport === 'docker' ? `docker://${host}/m` : `file://archive-${run}`;
    const [event, task] = transport === 'docker' ? ['copied', 'mirror'] : ['started', 'archive'];
    const entries = await auditOfKilled(event, 'all.yaml', to);
    expect(entries[0]).toMatchObject({ event: 'started', task });
    expect(entries.map((entry) => entry['event'])).not.toContain('ended');
    const [last] = await readRecordedRuns(at(workspace(), 'working-dir'));
    expect(last).toMatchObject({ started: { task }, ended: undefined });
  });

  it.each(['delete', 'prune'])('audits what %s deleted before it was killed', async (task) => {
    const proxy = await startRegistryProxy(host);
    ({ host } = proxy);
    try {
      expect(await mirror('all.yaml')).toMatchObject({ code: 0 });
      expect(await mirror('newest.yaml')).toMatchObject({ code: 0 });
      await age();
      const to = `docker://${host}/m`;
      const items = ['v1.0.0', 'v1.1.0'].map(
        (tag) => `- imageName: x\n  imageReference: ${to}/acme/bundle:${tag}\n  type: operatorBundle\n`,
      );
      await sandbox.write({
        'delete.yaml': `apiVersion: mirror.openshift.io/v2alpha1\nkind: DeleteImageList\nitems:\n${items.join('')}`,
      });
      let deletions = 0;
      proxy.disturb(({ method }) => (method === 'DELETE' && ++deletions > 1 ? { status: 503 } : undefined));
      const args =
        task === 'delete'
          ? (['', 'delete', '--delete-yaml-file', 'delete.yaml'] as const)
          : (['newest.yaml', '--prune', '--yes'] as const);
      const [config, ...flags] = args;
      const entries = await auditOfKilled('deleted', config, ...flags, to);
      expect(entries.slice(-2).map((entry) => entry['event'])).toEqual(['started', 'deleted']);
      const [last] = await readRecordedRuns(at(workspace(), 'working-dir'));
      expect(last).toMatchObject({ started: { task, destination: to }, ended: undefined });
    } finally {
      await proxy.close();
    }
  });

  it('audits deletions, mappings and catalogs', async () => {
    expect(await mirror('all.yaml')).toMatchObject({ code: 0 });
    const place = ['--workspace', `file://${workspace()}`, '--use-http'];
    const to = `docker://${host}/m`;
    const list = ['mirror', 'delete', ...place, to];
    await sandbox.write({
      'delete.yaml': `apiVersion: mirror.openshift.io/v2alpha1\nkind: DeleteImageList\nitems:\n- imageName: x\n  imageReference: ${to}/acme/bundle:v1.0.0\n  type: operatorBundle\n`,
    });
    const deletion = [...list, '--delete-yaml-file', 'delete.yaml'];
    expect(await sandbox.run([...deletion, '--dry-run'])).toMatchObject({ code: 0 });
    expect(await sandbox.run(deletion)).toMatchObject({ code: 0 });
    const from = `${source.host}/acme/bundle:v1.1.0`;
    expect(await sandbox.run(['mirror', ...place, `${from}=${host}/copied/bundle:v1`])).toMatchObject({
      code: 0,
    });
    expect(
      await sandbox.run([
        'catalog',
        'mirror',
        ...place,
        operators.catalog,
        `${host}/whole`,
        '--to-manifests',
        'manifests',
      ]),
    ).toMatchObject({ code: 0 });
    const entries = await audit();
    const runs = entries.filter(({ event }) => event === 'started').slice(1);
    expect(runs.map(({ task, destination, configuration }) => [task, destination, configuration])).toEqual([
      ['delete', to, 'delete.yaml'],
      ['mapping', host, undefined],
      ['catalog', `${host}/whole`, operators.catalog],
    ]);
    const of = (i: number) =>
      entries.filter(({ run, event }) => run === runs[i]?.['run'] && event !== 'started');
    expect(of(0)).toMatchObject([
      { event: 'deleted', image: `${host}/m/acme/bundle:v1.0.0`, digest: digestOf('acme/bundle:1.0.0') },
      { event: 'ended', result: 'done', images: 1 },
    ]);
    const digest = digestOf('acme/bundle:1.1.0');
    expect(of(1)).toMatchObject([
      { event: 'copied', image: `${host}/copied/bundle:v1`, digest, from },
      { event: 'ended', result: 'done', images: 1 },
    ]);
    expect(of(2).filter(({ event }) => event === 'copied')).toHaveLength(8);
    // They are no runs of the image set.
    expect((await mirror('all.yaml', '--retry-failed')).stderr).toContain('nothing to retry');
  });

  it('prunes catalogs, signatures and charts, and keeps digests in use', async () => {
    const signature = `${tagOf('acme/app:1.0.0')}.sig`;
    serveImage(source, 'acme/app', signature, smallImage({ text: 'signature' }));
    await sandbox.write({
      'portal/Chart.yaml': 'apiVersion: v2\nname: portal\nversion: 1.2.3\n',
      'portal/templates/none.yaml': '',
      'wide.yaml': `${await readFile(at('all.yaml'), 'utf8')}  helm:\n    local:\n    - name: portal\n      path: portal\n`,
      'narrow.yaml': `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  additionalImages:\n  - name: ${source.host}/acme/proxy@${digestOf('acme/proxy:1')}\n`,
    });
    expect(await mirror('wide.yaml', '--helm-charts')).toMatchObject({ code: 0 });
    expect(await tagsOf('acme/app')).toContain(signature);
    expect(await tagsOf('helm/local/portal')).toEqual(['1.2.3']);
    const pruned = await mirror('narrow.yaml', '--prune', '--yes', '--verbose');
    expect(pruned).toMatchObject({ code: 0 });
    for (const name of ['acme/index:v1', `acme/app:${signature}`, 'helm/local/portal:1.2.3'])
      expect(pruned.stderr).toContain(`  ${host}/m/${name}\n`);
    for (const name of ['acme/index', 'acme/app', 'acme/bundle', 'helm/local/portal'])
      expect(await tagsOf(name)).toEqual([]);
    expect(await tagsOf('acme/proxy')).toEqual([tagOf('acme/proxy:1')]);
  });

  it.each([
    [['--prune=soon'], '--prune "soon": not an age'],
    [['--yes'], '--yes: needs --prune'],
  ])('refuses %j', async (args, message) => {
    const result = await mirror('all.yaml', ...args);
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain(message);
  });
});
