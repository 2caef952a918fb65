import { readFileSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { loadAll } from 'js-yaml';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { encodeLock } from '../../src/mirror/lock/encode-lock.js';
import type { LockStatus } from '../../src/mirror/lock/lock-status.js';
import { writeArchiveSet } from '../../src/oci/archive-set/archive-set-writer.js';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { useSandbox } from '../support/command-line.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { smallImage, streamOf } from '../support/images.js';
import { contentsOf, imageManifest, layer, lockOf, lockedCatalog, lockedImage } from '../support/locks.js';
import { type OperatorSet, serveOperatorSet } from '../support/operator-set.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);

describe('opmate mirror diff', () => {
  const image = (name: string, size: number) => contentsOf([imageManifest(name, [layer(name, size)])]);
  const before = lockOf(
    [lockedImage('a', image('a1', 2048)), lockedImage('b', image('b', 20))],
    [lockedCatalog({ acme: ['acme.v0', 'acme.v1'] })],
  );
  const after = lockOf(
    [lockedImage('a', image('a2', 3_000_000)), lockedImage('c', image('c', 1))],
    [lockedCatalog({ acme: ['acme.v1', 'acme.v2\n+ x'], beta: ['beta.v1'] })],
  );
  beforeAll(() =>
    sandbox.write({ 'a.lock': encodeLock(before), 'b/working-dir/opmate.lock.json': encodeLock(after) }),
  );

  it('compares a lock with a workspace as text', async () => {
    const result = await sandbox.run(['mirror', 'diff', 'a.lock', 'b']);
    expect(result).toEqual({
      code: 3,
      stderr: '',
      stdout: `packages
+ beta

channels
+ beta/stable
~ acme/stable: acme.v1 -> "acme.v2\\n+ x"

bundles
+ "acme/acme.v2\\n+ x"
+ beta/beta.v1
- acme/acme.v0

images
+ ns/c:v1
- ns/b:v1
~ ns/a:v1: ${image('a1', 1).root.digest.slice(0, 19)} -> ${image('a2', 1).root.digest.slice(0, 19)}

1 package, 2 channels, 3 bundles, 3 images: 2.9 MiB more, 2.0 KiB less
`,
    });
  });

  it('reports no differences, and lists differences as JSON', async () => {
    const same = await sandbox.run(['mirror', 'diff', 'b', 'file://b/working-dir/opmate.lock.json']);
    expect(same).toEqual({ code: 0, stdout: 'no differences\n', stderr: '' });
    const json = await sandbox.run(['mirror', 'diff', '-o', 'json', 'a.lock', 'b/working-dir']);
    expect(JSON.parse(json.stdout)).toMatchObject({
      packages: { added: ['beta'], removed: [] },
      bytes: { added: 3_000_001, removed: 2068 },
    });
  });

  it('reads the lock of an archive', async () => {
    const { bytes, descriptor, config, layer: own, manifest } = smallImage();
    const [configBlob, layerBlob] = [manifest.config, manifest.layers[0] ?? manifest.config];
    const content = {
      root: descriptor,
      manifests: [{ descriptor, manifests: [], blobs: [configBlob, layerBlob] }],
    };
    const lock = encodeLock(lockOf([lockedImage('app', content)]));
    await mkdir(at('disk'));
    await writeArchiveSet(
      at('disk'),
      [{ repository: 'ns/app', tag: 'v1', root: descriptor }],
      [
        { descriptor, open: () => streamOf(bytes) },
        { descriptor: configBlob, open: () => streamOf(config) },
        { descriptor: layerBlob, open: () => streamOf(own) },
      ],
      { partBytes: 1e6, lock },
    );
    for (const name of ['disk', 'disk/mirror_archive.json', 'file://disk']) {
      const result = await sandbox.run(['mirror', 'diff', 'a.lock', name]);
      expect(result).toMatchObject({ code: 3, stderr: '' });
      expect(result.stdout).toContain('\n+ ns/app:v1\n- ns/a:v1\n- ns/b:v1\n');
    }
  });

  it.each([
    [['a.lock', 'nowhere'], 1, 'nowhere: no such file or directory\n'],
    [['a.lock', 'empty'], 1, 'empty: no archive or lock found\nhint: specify a lock file'],
    [['a.lock', 'bad.lock'], 1, 'bad.lock:1:1: images: missing\n'],
    [['a.lock', 'b', '-o', 'yaml'], 2, 'invalid --output value "yaml", expected (text|json)\n'],
    [['a.lock'], 2, 'missing required argument "to"'],
  ])('refuses %j', async (args, code, message) => {
    await mkdir(at('empty'), { recursive: true });
    await sandbox.write({
      'bad.lock': {
        version: 1,
        configuration: `sha256:${'a'.repeat(64)}`,
        options: {},
        catalogs: [],
        blobs: {},
        manifests: {},
      },
    });
    const result = await sandbox.run(['mirror', 'diff', ...args]);
    expect(result).toMatchObject({ code, stdout: '' });
    expect(result.stderr).toContain(message);
  });
});

describe('opmate mirror status', () => {
  let source: FaultRegistry;
  let operators: OperatorSet;
  let target: Registry;
  let host = '';
  let run = 0;
  /** What cannot be had at the source for now: part of a path. */
  let failing: string | undefined;
  beforeAll(async () => {
    source = await startFaultRegistry();
    source.gate(({ path: url }) =>
      failing !== undefined && url.includes(failing) ? { status: 404 } : undefined,
    );
    operators = await serveOperatorSet(source);
    const heads = `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: ${operators.catalog}
`;
    await sandbox.write({ 'heads.yaml': heads, 'set.yaml': `${heads}    full: true\n` });
    return () => source.close();
  });
  beforeEach(async () => {
    failing = undefined;
    target = await startRegistry({ directory: at(`target-${++run}`) });
    host = new URL(target.url).host;
    return () => target.close();
  });

  const opmate = (...args: string[]) => sandbox.run(['mirror', ...args, '--use-http']);
  const status = (...args: string[]) => opmate('status', ...args);
  const parsed = async (...args: string[]): Promise<LockStatus> =>
    JSON.parse((await status(...args, '-o', 'json')).stdout) as LockStatus;
  const registry = (): string => `docker://${host}/ocm`;
  const plan = (name: string) =>
    opmate('plan', registry(), '--config', 'set.yaml', `--workspace=file://${name}`);
  const copy = (name: string) => opmate('--config', 'set.yaml', registry(), `--workspace=file://${name}`);

  it('sums up a package that two catalogs have by catalog', async () => {
    const heads = await readFile(at('heads.yaml'), 'utf8');
    const pinned = `${source.host}/acme/index@${operators.digests.get('acme/index:v1')}`;
    const second = `  - catalog: ${pinned}\n    targetCatalog: other/index\n    targetTag: v2\n`;
    await sandbox.write({ 'two.yaml': `${heads}${second}    full: true\n` });
    const workspace = '--workspace=file://two';
    const planned = await opmate('plan', registry(), '--config', 'two.yaml', workspace);
    expect(planned.stdout).toMatch(/^PACKAGE +CATALOG +IMAGES +SIZE +UNIQUE$/m);
    const { packages } = await parsed(registry(), workspace);
    expect(packages.map(({ name, catalog, images }) => ({ name, catalog, images }))).toEqual([
      { name: 'widget', catalog: operators.catalog, images: 3 },
      { name: 'widget', catalog: pinned, images: 7 },
    ]);
    expect((await status(registry(), workspace)).stdout).toMatch(
      /^PACKAGE +CATALOG +IMAGES +COMPLETE +LEFT$/m,
    );
  });

  it('reports an empty target, a complete one, then a moved tag', async () => {
    await plan('whole');
    const before = await parsed(registry(), '--workspace=file://whole');
    expect(before).toMatchObject({ isComplete: false, images: { total: 8, complete: 0 } });
    expect(before.bytes.left).toBe(before.bytes.total);
    expect(before.catalogs).toEqual([{ image: `${host}/ocm/acme/index:v1`, isComplete: false }]);
    expect(before.packages).toMatchObject([{ name: 'widget', images: 7, complete: 0 }]);
    expect(before.incomplete).toHaveLength(8);
    expect((await copy('whole')).code).toBe(0);
    const requests = source.requests.length;
    const after = await status(registry(), '--workspace=file://whole');
    expect(after).toMatchObject({ code: 0, stderr: '' });
    expect(after.stdout).toMatch(
      /^docker:\/\/\S+: 8 of 8 images complete\nlock: \S*opmate\.lock\.json\nleft: 0 blobs, 0 bytes of \d+ blobs, .*\ncatalog \S+\/acme\/index:v1: present\n\nPACKAGE {2}IMAGES {2}COMPLETE {2}LEFT\nwidget {3}7 {7}7 {9}0 bytes\n$/,
    );
    expect(source.requests).toHaveLength(requests);
    // A tag that means something else is left too.
    const other = await fetch(`http://${host}/v2/ocm/acme/bundle/manifests/v1.0.0`);
    await fetch(`http://${host}/v2/ocm/acme/bundle/manifests/v1.1.0`, {
      method: 'PUT',
      headers: { 'content-type': other.headers.get('content-type') ?? '' },
      body: await other.text(),
    });
    expect(await parsed(registry(), '--workspace=file://whole')).toMatchObject({
      images: { total: 8, complete: 7 },
      bytes: { left: 0 },
      incomplete: [`${host}/ocm/acme/bundle:v1.1.0`],
    });
  });

  it('accepts the configuration of the run, and refuses a missing file', async () => {
    await plan('named');
    const workspace = '--workspace=file://named';
    const plain = await status(registry(), workspace);
    expect(await status(registry(), workspace, '-c', 'set.yaml')).toEqual(plain);
    const missing = await status(registry(), workspace, '-c', 'nosuch.yaml');
    expect(missing).toMatchObject({ code: 1, stdout: '' });
    expect(missing.stderr).toContain('nosuch.yaml: no such file or directory');
  });

  it('reports the remaining bytes of an incomplete run exactly', async () => {
    await plan('part');
    const app = operators.digests.get('acme/app:1.2.0') as string;
    failing = app;
    expect(
      (await opmate('--config', 'set.yaml', registry(), '--workspace=file://part', '--locked')).code,
    ).toBe(1);
    failing = undefined;
    const left = await parsed(registry(), '--workspace=file://part');
    expect(left.isComplete).toBe(false);
    expect(left.blobs.left).toBeGreaterThan(1);
    expect(left.incomplete.some((name) => name.includes(app.slice(7)))).toBe(true);
    const text = await status(registry(), '--workspace=file://part');
    expect(text).toMatchObject({ code: 4, stderr: '' });
    expect(text.stdout).toContain('catalog ');
    expect(text.stdout).toContain('\nnot complete:\n');
    const next = await copy('part');
    expect(next).toMatchObject({ code: 0 });
    expect(next.stderr).toContain(`; to copy: ${left.blobs.left} blobs, `);
    expect(await parsed(registry(), '--workspace=file://part')).toMatchObject({
      isComplete: true,
      incomplete: [],
    });
  });

  it('refuses local images that only the lock names, and reads them where they are allowed', async () => {
    await plan('forged');
    const file = path.join(sandbox.work, 'forged/working-dir/opmate.lock.json');
    const text = await readFile(file, 'utf8');
    const forged = text.replace(
      /"source": ?"docker:\/\/[^"]*acme\/app[^"]*"/,
      '"source":"oci:/tmp/of-the-user:v1"',
    );
    expect(forged).not.toBe(text);
    await writeFile(file, forged);
    const args = ['--config', 'set.yaml', registry(), '--workspace=file://forged', '--locked'];
    const refused = await opmate(...args);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain('"oci:/tmp/of-the-user:v1" is on this machine');
    expect((await opmate(...args, '--allow-local')).stderr).not.toContain('is on this machine');
  });

  it('reports the contents of a complete archive', async () => {
    expect((await opmate('--config', 'set.yaml', 'file://disk-set')).code).toBe(0);
    const result = await status('file://disk-set');
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(result.stdout).toMatch(
      /^file:\/\/disk-set: 8 of 8 images complete\nlock: \S*opmate\.lock\.json\narchive: sha256:\w{64}\nleft: 0 blobs/,
    );
    const archived = await parsed('file://disk-set');
    expect(archived).toMatchObject({ isComplete: true, archive: { isOfLock: true } });
    await rm(at('disk-set', 'working-dir'), { recursive: true });
    expect(await parsed('file://disk-set')).toEqual({ ...archived, lock: 'embedded in the archive' });
    await rm(at('disk-set', 'mirror_000001.tar'));
    const damaged = await status('file://disk-set');
    expect(damaged).toMatchObject({ code: 1, stdout: '' });
    expect(damaged.stderr).toContain('mirror_000001.tar: part of the archive not found');
  });

  it('reports the complete images of an unfinished archive', async () => {
    // An archive of less is there, with its lock, until the next one is whole.
    expect((await opmate('--config', 'heads.yaml', 'file://half')).code).toBe(0);
    expect((await parsed('file://half')).images).toEqual({ total: 4, complete: 4 });
    const app = operators.digests.get('acme/app:1.0.0') as string;
    const text = await (await fetch(`http://${source.host}/v2/acme/app/manifests/${app}`)).text();
    const { layers } = JSON.parse(text) as { layers: { digest: string }[] };
    failing = layers.at(-1)?.digest ?? '?';
    const result = await opmate('--config', 'set.yaml', 'file://half');
    expect(result.code).toBe(1);
    failing = undefined;
    const left = await parsed('file://half');
    expect(left).toMatchObject({ isComplete: false });
    expect(left.images.complete).toBeLessThan(8);
    expect(left.bytes.left).toBeGreaterThan(0);
    expect(left.archive).toMatchObject({ isOfLock: false });
    expect(left.images.total).toBe(8);
    expect(left.incomplete.some((name) => name.includes(app.slice(7)))).toBe(true);
    const said = await status('file://half');
    expect(said).toMatchObject({ code: 4, stderr: '' });
    expect(said.stdout).toContain(', made of another lock, which the next run replaces\n');
    expect((await opmate('--config', 'set.yaml', 'file://half')).code).toBe(0);
    expect((await status('file://half')).code).toBe(0);
  });

  it('reports a complete target after four concurrent pods of the example Job', async () => {
    await plan('pods');
    const example = loadAll(readFileSync('docs/examples/mirror-job.yaml', 'utf8')).at(-1) as {
      spec: { completions: number; template: { spec: { containers: { args: string[] }[] } } };
    };
    const places: Record<string, string> = {
      '/image-set/image-set.yaml': at('set.yaml'),
      '/image-set/opmate.lock.json': at('pods', 'working-dir', 'opmate.lock.json'),
      '/credentials/.dockerconfigjson': at('auth.json'),
      'docker://mirror.example.com/olm': registry(),
    };
    await sandbox.write({ 'auth.json': { auths: {} } });
    const { completions, template } = example.spec;
    const pods = Array.from({ length: completions }, (_, i) => {
      const args = template.spec.containers[0]?.args.map((arg) =>
        arg === 'file:///work' ? `file://${at(`pod-${i}`)}` : (places[arg] ?? arg),
      );
      return sandbox.run([...(args ?? []), '-o', 'text', '--use-http'], {
        ownProcess: true,
        env: {
          HOME: '/nonexistent',
          JOB_COMPLETION_INDEX: String(i),
          JOB_COMPLETION_COUNT: String(completions),
        },
      });
    });
    const results = await Promise.all(pods);
    expect(results.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
    const lines = results.flatMap(({ stdout }) => stdout.trimEnd().split('\n')).filter((line) => line !== '');
    const images = lines.filter((line) => !line.includes('/acme/index:'));
    expect([images.length, new Set(images).size]).toEqual([7, 7]);
    expect(lines.length).toBeGreaterThan(7);
    expect(await parsed(registry(), '--workspace=file://pods')).toMatchObject({ isComplete: true });
  });

  it('fails without a lock, a response or a directory', async () => {
    const none = await status(registry(), '--workspace=file://nothing');
    expect(none).toMatchObject({ code: 1, stdout: '' });
    expect(none.stderr).toContain('nothing/working-dir/opmate.lock.json: lock not found\nhint: ');
    await plan('dead');
    await target.close();
    const dead = await status(registry(), '--workspace=file://dead', '--retry-timeout', '200ms');
    expect(dead).toMatchObject({ code: 1, stdout: '' });
    const absent = await status('file://absent', '--lock', 'dead/working-dir/opmate.lock.json');
    expect(absent).toMatchObject({ code: 1, stdout: '' });
    expect(absent.stderr).toContain('absent: no such file or directory');
  });
});
