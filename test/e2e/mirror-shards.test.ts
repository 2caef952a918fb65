/** The indexed Job of docs/examples, as processes that are killed: one registry is all that they share. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { loadAll } from 'js-yaml';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { planOf } from '../../src/mirror/lock/encode-lock.js';
import { parseLock } from '../../src/mirror/lock/parse-lock.js';
import type { LockStatus } from '../../src/mirror/lock/lock-status.js';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { serveImage, smallImage } from '../support/images.js';
import { type OperatorSet, serveOperatorSet } from '../support/operator-set.js';
import { type RegistryProxy, startRegistryProxy } from '../support/registry-proxy.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
/** How often pods are killed; more by hand. */
const kills = Number(process.env['OPMATE_TEST_KILLS'] ?? 5);
let source: FaultRegistry;
let operators: OperatorSet;

interface Job {
  spec: { completions: number; template: { spec: { containers: { args: string[] }[] } } };
}
const example = loadAll(readFileSync('docs/examples/mirror-job.yaml', 'utf8')).at(-1) as Job;
const { completions } = example.spec;

beforeAll(async () => {
  source = await startFaultRegistry();
  operators = await serveOperatorSet(source);
  await sandbox.write({
    'set.yaml': `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: ${operators.catalog}
    full: true
`,
    'auth.json': { auths: {} },
  });
});
afterAll(() => source.close());

describe.runIf(hasDockerRegistry)('pods of the example Job', () => {
  let registry: DockerRegistry;
  let target: RegistryProxy;
  let to = '';
  let plan = '';
  beforeEach(async () => {
    registry = await startDockerRegistry();
    target = await startRegistryProxy(registry.host);
    to = `docker://${target.host}/olm`;
    await rm(at('planned'), { recursive: true, force: true });
    const args = ['mirror', 'plan', to, '-c', 'set.yaml', '--workspace=file://planned', '--use-http'];
    const planned = await sandbox.run(args);
    expect(planned).toMatchObject({ code: 0 });
    const text = await readFile(at('planned/working-dir/opmate.lock.json'), 'utf8');
    plan = planOf(parseLock(text, 'lock'));
    expect((JSON.parse(text) as { plan: string }).plan).toBe(plan);
    expect(planned.stderr).toContain(`info: plan ${plan}\n`);
    return async () => {
      await target.close();
      await registry.close();
    };
  });

  const startPod = (index: number, more: string[] = [], ownPlan = plan) => {
    const places: Record<string, string> = {
      '/image-set/image-set.yaml': at('set.yaml'),
      '/image-set/opmate.lock.json': at('planned/working-dir/opmate.lock.json'),
      '/credentials/.dockerconfigjson': at('auth.json'),
      'docker://mirror.example.com/olm': to,
      'file:///work': `file://${at(`pod-${index}`)}`,
    };
    const args = example.spec.template.spec.containers[0]?.args ?? [];
    const own = args.map((arg) => places[arg] ?? arg);
    const env = {
      HOME: '/nonexistent',
      JOB_COMPLETION_INDEX: String(index),
      JOB_COMPLETION_COUNT: String(completions),
      OPMATE_PLAN: ownPlan,
    };
    return sandbox.start([...own, '--use-http', ...more], { env });
  };
  const status = async (...args: string[]): Promise<LockStatus & { plan: string }> => {
    const words = ['mirror', 'status', to, '--workspace=file://planned', '--use-http', '-o', 'json'];
    return JSON.parse((await sandbox.run([...words, ...args])).stdout) as LockStatus & { plan: string };
  };
  /** Whatever was stored, as `METHOD path` with session and query cut off, but for the digest. */
  const stored = (): string[] =>
    target.requests
      .filter(({ method, status: code }) => method === 'PUT' && code === 201)
      .map(({ path: url }) => {
        const { pathname, searchParams } = new URL(url, 'http://x');
        return searchParams.get('digest') ?? pathname;
      });
  const mounted = (): string[] =>
    target.requests
      .filter(
        ({ method, path: url, status: code }) => method === 'POST' && url.includes('mount=') && code === 201,
      )
      .map(({ path: url }) => url);
  const repeated = (list: readonly string[]): string[] => list.filter((one, i) => list.indexOf(one) !== i);

  const requireMirrored = async (): Promise<void> => {
    for (const [name, digest] of operators.digests) {
      const [repository = '', version = ''] = name.split(':');
      const isTagged = repository === 'acme/bundle' || repository === 'acme/index';
      const tag =
        repository === 'acme/bundle' ? `v${version}` : isTagged ? version : digest.replace(':', '-');
      const image = `docker://${registry.host}/olm/${repository}:${tag}`;
      const { stdout } = await promisify(execFile)('skopeo', ['inspect', '--tls-verify=false', image]);
      expect((JSON.parse(stdout) as { Digest: string }).Digest).toBe(digest);
    }
    const after = await status('--shards', String(completions));
    expect(after).toMatchObject({ isComplete: true, plan, images: { total: 8, complete: 8 } });
    expect(after.shards?.map(({ shard, images, complete }) => [shard, images - complete])).toEqual([
      [0, 0],
      [1, 0],
      [2, 0],
      [3, 0],
    ]);
    expect(after.shards?.reduce((sum, { images }) => sum + images, 0)).toBe(7);
  };

  it('store every blob, manifest and tag once when concurrent', async () => {
    const before = await status('--shards', String(completions));
    expect(before.shards?.every(({ complete, bytesLeft }) => complete === 0 && bytesLeft > 0)).toBe(true);
    const pods = Array.from({ length: completions }, (_, index) => startPod(index, ['--shard-wait', '60s']));
    const results = await Promise.all(pods.map(({ result }) => result));
    expect(results.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    expect([repeated(stored()), repeated(mounted())]).toEqual([[], []]);
    await requireMirrored();
    // A Job that is started again stores nothing.
    const count = stored().length;
    const again = await Promise.all([3, 1, 0, 2].map((index) => startPod(index).result));
    expect(again.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    expect([stored().length, mounted().length]).toEqual([count, mounted().length]);
  });

  it('complete after any number of kills, and store nothing twice', async () => {
    let killed = 0;
    let seed = 20_261_123;
    const random = (most: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return 1 + (seed % most);
    };
    const running = new Map<number, ReturnType<typeof startPod>>();
    let next = target.requests.length + random(40);
    target.disturb(() => {
      const pods = [...running.values()];
      if (killed >= kills || target.requests.length < next || pods.length === 0) return undefined;
      killed++;
      next = target.requests.length + random(40);
      pods[random(pods.length) - 1]?.child.kill('SIGKILL');
      return undefined;
    });
    /** As `restartPolicy` and `backoffLimitPerIndex` have it. */
    const runPod = async (index: number): Promise<void> => {
      for (let attempt = 0; attempt <= kills; attempt++) {
        const pod = startPod(index, ['--shard-wait', '60s']);
        running.set(index, pod);
        const { code, stderr } = await pod.result;
        running.delete(index);
        if (code === 0) return;
        expect({ code, stderr }).toMatchObject({ code: null });
      }
    };
    await Promise.all(Array.from({ length: completions }, (_, index) => runPod(index)));
    expect(killed).toBeGreaterThan(0);
    expect(repeated(stored())).toEqual([]);
    await requireMirrored();
  });

  it('complete in sequence, and with a late pod', async () => {
    for (const index of [2, 0, 3]) {
      const { code } = await startPod(index, ['--shard-wait', '0s']).result;
      expect(code).toBe(0);
      const left = await status('--shards', String(completions));
      expect(left.isComplete).toBe(false);
      expect(left.shards?.[index]).toMatchObject({ bytesLeft: 0 });
    }
    const text = ['mirror', 'status', to, '--workspace=file://planned', '--use-http', '--shards', '4'];
    const shown = await sandbox.run(text);
    expect(shown).toMatchObject({ code: 4 });
    expect(shown.stdout).toMatch(
      new RegExp(`plan: ${plan}\n\nSHARD +IMAGES +COMPLETE +LEFT\n0/4 +\\d +\\d +0 bytes\n1/4 `),
    );
    expect((await startPod(1, ['--shard-wait', '0s']).result).code).toBe(0);
    expect(repeated(stored())).toEqual([]);
    await requireMirrored();
  });

  it('check the images of other shards only where the catalogs depend on them', async () => {
    const names = Array.from({ length: 4 }, (_, i) => {
      serveImage(source, `apart/${i}`, 'v1', smallImage({ labels: { i: String(i) }, text: `layer ${i}` }));
      return `  - name: ${source.host}/apart/${i}:v1\n`;
    });
    await sandbox.write({
      'apart.yaml': `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  additionalImages:\n${names.join('')}`,
    });
    const places = ['-c', 'apart.yaml', '--workspace=file://apart', '--use-http'];
    expect(await sandbox.run(['mirror', 'plan', to, ...places])).toMatchObject({ code: 0 });
    const requested = async (index: number): Promise<number> => {
      const before = target.requests.length;
      const shard = ['--locked', `--shard=${index}/2`, '--shard-wait=0s'];
      expect(await sandbox.run(['mirror', to, ...places, ...shard])).toMatchObject({ code: 0 });
      const paths = target.requests.slice(before).map(({ path: url }) => /^[^?]*\/apart\/\d/.exec(url)?.[0]);
      return new Set(paths.filter((name) => name !== undefined)).size;
    };
    expect([await requested(0), await requested(1)]).toEqual([2, 4]);
    // A catalog at the target shows that its images are there.
    for (const index of [3, 1, 0, 2]) await startPod(index, ['--shard-wait', '0s']).result;
    const before = target.requests.length;
    expect((await startPod(0).result).code).toBe(0);
    const paths = target.requests.slice(before).map(({ method, path: url }) => `${method} ${url}`);
    const own = paths.filter((line) => line.startsWith('HEAD') && !line.includes('/acme/index/'));
    expect(own.length).toBeLessThan(paths.length);
    expect(new Set(own.map((line) => line.replace(/\/(blobs|manifests)\/.*/, ''))).size).toBeLessThan(3);
  });

  it.each([['--shard=0/1'], []])(
    'count images that the target cannot be asked for as failed %j',
    async (...shard) => {
      target.disturb(({ method, path: url }) =>
        method === 'HEAD' && url.includes('/acme/app/') ? { status: 403 } : undefined,
      );
      const run = () =>
        sandbox.run([
          ...['mirror', to, '-c', 'set.yaml', '--workspace=file://planned', '--use-http', '--locked'],
          ...['--on-error=skip-image', '-o', 'json', ...shard],
        ]);
      const partly = await run();
      expect(partly).toMatchObject({ code: 4 });
      expect(partly.stderr).toContain('acme/app');
      const tagsOf = async (name: string): Promise<number> =>
        (await fetch(`http://${registry.host}/v2/olm/acme/${name}/tags/list`)).status;
      // The catalog waits for them.
      expect([await tagsOf('proxy'), await tagsOf('app'), await tagsOf('index')]).toEqual([200, 404, 404]);
      target.disturb(() => undefined);
      expect(await run()).toMatchObject({ code: 0 });
      await requireMirrored();
    },
  );

  it('request an awaited blob once, however many repositories it is mounted in', async () => {
    const images = Array.from({ length: 8 }, (_, i) =>
      smallImage({ labels: { i: String(i) }, text: 'a layer of all images' }),
    );
    for (const [i, image] of images.entries()) serveImage(source, `shared/${i}`, 'v1', image);
    const names = images.map((_, i) => `  - name: ${source.host}/shared/${i}:v1\n`).join('');
    await sandbox.write({
      'shared.yaml': `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n  additionalImages:\n${names}`,
    });
    const places = ['-c', 'shared.yaml', '--workspace=file://shared', '--use-http'];
    expect(await sandbox.run(['mirror', 'plan', to, ...places])).toMatchObject({ code: 0 });
    const layer = images[0]?.manifest.layers[0]?.digest ?? '';
    for (const index of [0, 1]) {
      const before = target.requests.length;
      const shard = ['--locked', `--shard=${index}/2`, '--shard-wait=0s'];
      expect(await sandbox.run(['mirror', to, ...places, ...shard])).toMatchObject({ code: 0 });
      const requests = target.requests.slice(before);
      const own = (method: string, code: number): string[] =>
        requests
          .filter((request) => request.method === method && request.status === code)
          .map(({ path: url }) => url)
          .filter((url) => url.includes(encodeURIComponent(layer)) || url.includes(layer));
      expect(own('HEAD', 200)).toHaveLength(index);
      expect(own('PUT', 201)).toHaveLength(1 - index);
      expect(own('POST', 201)).toHaveLength(3 + index);
    }
  });

  it('refuse the lock of another plan before any request', async () => {
    const before = target.requests.length;
    const other = `sha256:${'0'.repeat(64)}`;
    const { code, stderr } = await startPod(1, [], other).result;
    expect(code).toBe(2);
    expect(stderr).toMatch(
      new RegExp(`opmate\\.lock\\.json: is of plan ${plan}, expected "${other}"\nhint: use the same lock`),
    );
    expect(target.requests.slice(before).filter(({ method }) => method !== 'GET')).toEqual([]);
    const args = ['mirror', '-c', 'set.yaml', to, '--use-http', '--plan'];
    const unlocked = await sandbox.run([...args, plan]);
    expect(unlocked.stderr).toContain('--plan: needs --locked');
    const invalid = await sandbox.run([...args, 'x', '--locked']);
    expect(invalid.stderr).toContain('--plan "x": not a plan ID');
    expect([unlocked.code, invalid.code]).toEqual([1, 2]);
  });
});
