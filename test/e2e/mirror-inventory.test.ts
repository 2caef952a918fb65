import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { Ajv } from 'ajv';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseInventory } from '../../src/mirror/inventory/inventory.js';
import { readArchiveIndex } from '../../src/oci/archive-set/archive-index.js';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { type OperatorSet, serveOperatorSet } from '../support/operator-set.js';
import { type RegistryProxy, startRegistryProxy } from '../support/registry-proxy.js';

const sandbox = useSandbox();
const at = (...names: string[]): string => path.join(sandbox.work, ...names);
let source: FaultRegistry;
let operators: OperatorSet;

beforeAll(async () => {
  source = await startFaultRegistry();
  operators = await serveOperatorSet(source);
  const heads = `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: ${operators.catalog}
`;
  await sandbox.write({ 'heads.yaml': heads, 'all.yaml': `${heads}    full: true\n` });
});
afterAll(() => source.close());

const opmate = (...args: string[]) => sandbox.run(['mirror', ...args, '--use-http']);

describe.runIf(hasDockerRegistry)('opmate mirror inventory', () => {
  let registry: DockerRegistry;
  let target: RegistryProxy;
  let to = '';
  beforeEach(async () => {
    registry = await startDockerRegistry();
    target = await startRegistryProxy(registry.host);
    to = `docker://${target.host}/olm`;
    return async () => {
      await target.close();
      await registry.close();
    };
  });

  const inventoryOf = async (...args: string[]) => {
    const result = await opmate('inventory', to, ...args);
    expect(result).toMatchObject({ code: 0 });
    return { ...result, inventory: parseInventory(result.stdout, 'inventory') };
  };
  const inspect = async (name: string): Promise<unknown> => {
    const image = `docker://${registry.host}/olm/${name}`;
    const { stdout } = await promisify(execFile)('skopeo', ['inspect', '--tls-verify=false', image]);
    return (JSON.parse(stdout) as { Digest: string }).Digest;
  };
  /** Mirrors the heads, and returns the inventory of that as a file. */
  const mirrorHeads = async (file: string): Promise<void> => {
    const first = await opmate('-c', 'heads.yaml', to, '--workspace', 'file://first');
    expect(first).toMatchObject({ code: 0 });
    const written = await opmate('inventory', to, '--to', file);
    expect(written).toMatchObject({ code: 0, stdout: '' });
    expect(written.stderr).toMatch(
      /inventory sha256:\w+: 4 repositories, 4 tags, 4 manifests, \d+ blobs, .*KiB\n/,
    );
  };

  it('archives only missing blobs, and mirrors with existing ones', async () => {
    await mirrorHeads('inside.json');
    const { inventory } = await inventoryOf();
    expect([...inventory.repositories.keys()]).toEqual(
      ['olm/acme/app', 'olm/acme/bundle', 'olm/acme/index', 'olm/acme/proxy'].sort(),
    );
    const text = await readFile(at('inside.json'), 'utf8');
    expect(text).toBe((await inventoryOf()).stdout);
    const schema = JSON.parse(await readFile('schemas/mirror-inventory.json', 'utf8')) as object;
    expect(new Ajv({ strict: true }).validate(schema, JSON.parse(text))).toBe(true);
    const whole = await opmate('-c', 'all.yaml', 'file://whole');
    expect(whole).toMatchObject({ code: 0 });
    const packed = await opmate('-c', 'all.yaml', 'file://carry', '--base', 'inside.json');
    expect(packed).toMatchObject({ code: 0 });
    expect(packed.stderr).toMatch(/based on inventory sha256:\w+: \d+ files, .* omitted/);
    const index = await readArchiveIndex(at('carry'));
    const had = new Set([...inventory.blobs.keys(), ...inventory.manifests.keys()]);
    expect([...index.blobs.keys()].filter((digest) => had.has(digest))).toEqual([]);
    expect([...index.inBase.keys()].every((digest) => had.has(digest))).toBe(true);
    expect(index.blobs.size + index.inBase.size).toBe((await readArchiveIndex(at('whole'))).blobs.size);
    const before = target.uploaded().length;
    const copied = await opmate('--from', 'carry', '-c', 'all.yaml', to, '--workspace', 'file://far');
    expect(copied).toMatchObject({ code: 0 });
    const sent = target.uploaded().slice(before);
    expect(sent.length).toBeGreaterThan(0);
    expect(sent.filter((digest) => had.has(digest))).toEqual([]);
    for (const [name, digest] of operators.digests) {
      if (name.startsWith('acme/index')) continue;
      const [repository = '', version = ''] = name.split(':');
      const tag = repository === 'acme/bundle' ? `v${version}` : digest.replace(':', '-');
      expect(await inspect(`${repository}:${tag}`)).toBe(digest);
    }
    const status = await opmate('status', to, '--workspace', 'file://carry');
    expect(status).toMatchObject({ code: 0 });
    // Nothing is lacking now.
    await writeFile(at('now.json'), (await inventoryOf()).stdout);
    const nothing = await opmate('-c', 'all.yaml', 'file://nothing', '--base', 'now.json');
    expect(nothing).toMatchObject({ code: 0 });
    expect((await readArchiveIndex(at('nothing'))).blobs.size).toBe(0);
    expect((await opmate('--from', 'nothing', to, '--workspace', 'file://far')).code).toBe(0);
  });

  it('refuses a path without repositories, which may be mistyped', async () => {
    await mirrorHeads('typed.json');
    const result = await opmate('inventory', to.replace(/olm$/, 'ulm'));
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain('/ulm: no repository below this path');
    expect(result.stderr).toContain('did you mean "olm"?');
  });

  it('reuses existing blobs in new repositories', async () => {
    // The registry has the images below another path only.
    const other = `docker://${target.host}/old/place`;
    expect((await opmate('-c', 'all.yaml', other, '--workspace', 'file://old')).code).toBe(0);
    const whole = await opmate('inventory', `docker://${target.host}`, '--to', 'whole.json');
    expect(whole).toMatchObject({ code: 0 });
    expect((await opmate('-c', 'all.yaml', 'file://empty', '--base', 'whole.json')).code).toBe(0);
    expect((await readArchiveIndex(at('empty'))).blobs.size).toBe(0);
    const before = target.uploaded().length;
    const copied = await opmate('--from', 'empty', '-c', 'all.yaml', to, '--workspace', 'file://far2');
    expect(copied).toMatchObject({ code: 0 });
    expect(target.uploaded().slice(before)).toEqual([]);
    expect(await inspect('acme/bundle:v1.2.0')).toBe(operators.digests.get('acme/bundle:1.2.0'));
    // A registry that does not mount is sent the same, read from its other repository.
    target.disturb(({ method, path: url }) =>
      method === 'POST' && url.includes('mount=')
        ? { status: 405, body: '{"errors":[{"code":"UNSUPPORTED"}]}' }
        : undefined,
    );
    const third = `docker://${target.host}/third`;
    const sent = await opmate('--from', 'empty', third, '--workspace', 'file://far3');
    expect(sent).toMatchObject({ code: 0 });
    expect((await opmate('status', third, '--workspace', 'file://empty')).code).toBe(0);
  });

  it('fails before copying if a blob has been removed, with a hint', async () => {
    await mirrorHeads('gone.json');
    expect((await opmate('-c', 'all.yaml', 'file://later', '--base', 'gone.json')).code).toBe(0);
    const index = await readArchiveIndex(at('later'));
    const [lost, holder] = [...(index.holders ?? [])].find(([digest]) => !isManifest(index, digest)) ?? [];
    for (const repository of ['app', 'bundle', 'index', 'proxy']) {
      await fetch(`http://${registry.host}/v2/olm/acme/${repository}/blobs/${lost}`, { method: 'DELETE' });
    }
    const before = target.requests.length;
    const result = await opmate('--from', 'later', to, '--workspace', 'file://far4');
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain(`needs ${lost}, which is no longer in ${holder}`);
    expect(result.stderr).toContain('hint: run opmate mirror inventory again');
    const wrote = target.requests.slice(before).filter(({ method }) => !['GET', 'HEAD'].includes(method));
    expect(wrote).toEqual([]);
    // That hint works: what is gone is carried, and comes back, although its manifests are there.
    const again = await opmate('inventory', to, '--to', 'again.json');
    expect(again.stderr).toContain('missing, e.g. sha256:');
    expect((await opmate('-c', 'all.yaml', 'file://repair', '--base', 'again.json')).code).toBe(0);
    expect((await readArchiveIndex(at('repair'))).blobs.has(lost as string)).toBe(true);
    expect((await opmate('--from', 'repair', to, '--workspace', 'file://far4')).code).toBe(0);
    const [, name] = (holder ?? '').split('olm/');
    expect((await fetch(`http://${registry.host}/v2/olm/${name}/blobs/${lost}`)).status).toBe(200);
  });

  it('reads the repositories of a lock or of flags if the registry does not list them', async () => {
    await mirrorHeads('listed.json');
    target.disturb(({ path: url }) =>
      url.startsWith('/v2/_catalog')
        ? { status: 401, body: '{"errors":[{"code":"UNAUTHORIZED","message":"no"}]}' }
        : undefined,
    );
    const refused = await opmate('inventory', to);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toMatch(
      /does not list its repositories: .*\nhint: specify them with --repository, or /,
    );
    const listed = await readFile(at('listed.json'), 'utf8');
    for (const lock of ['first', 'first/working-dir/opmate.lock.json'])
      expect((await inventoryOf('--lock', lock)).stdout).toBe(listed);
    const some = await inventoryOf('--repository', 'acme/app', '--repository', 'acme/none');
    expect([...some.inventory.repositories.keys()]).toEqual(['olm/acme/app']);
  });
});

describe('opmate mirror --base with an untrusted inventory', () => {
  const digest = `sha256:${'a'.repeat(64)}`;
  const whole = {
    kind: 'MirrorInventory',
    version: 1,
    id: digest,
    registry: 'docker://inside.test',
    repositories: { 'ns/app': { tags: { v1: digest }, manifests: [digest], blobs: [] } },
    manifests: { [digest]: 2 },
    blobs: {},
  };
  it.each([
    ['of a later version', { ...whole, version: 2 }, 'version: unsupported value 2'],
    ['that was edited', whole, 'id: not the id of this content'],
    [
      'with a path as name',
      { ...whole, repositories: { '../x': whole.repositories['ns/app'] } },
      'not a repository name',
    ],
    ['with a size below zero', { ...whole, manifests: { [digest]: -1 } }, 'expected a size in bytes'],
    ['with a huge manifest', { ...whole, manifests: { [digest]: 2 ** 40 } }, 'more than the maximum of'],
    ['with a digest that is none', { ...whole, blobs: { 'sha256:../../x': 1 } }, 'invalid digest'],
    ['with an unlisted manifest', { ...whole, manifests: {} }, 'is not in manifests'],
    ['without tables', { kind: 'MirrorInventory', version: 1 }, 'manifests: missing'],
  ])('refuses one %s', async (_what, content, problem) => {
    await sandbox.write({ 'bad.json': JSON.stringify(content) });
    const result = await opmate('-c', 'all.yaml', 'file://bad-base', '--base', 'bad.json');
    expect(result).toMatchObject({ code: 1, stdout: '' });
    expect(result.stderr).toContain(problem);
  });

  it('refuses duplicate keys and a truncated file', async () => {
    const text = JSON.stringify(whole);
    await sandbox.write({
      'twice.json': text.replace('"v1":', `"v1":"${digest}","v1":`),
      'cut.json': text.slice(0, -20),
    });
    const twice = await opmate('-c', 'all.yaml', 'file://bad-base', '--base', 'twice.json');
    expect(twice.stderr).toContain('duplicate key, first defined on line');
    const cut = await opmate('-c', 'all.yaml', 'file://bad-base', '--base', 'cut.json');
    expect(cut.stderr).toContain('cut.json:1: invalid JSON');
    expect([twice.code, cut.code]).toEqual([1, 1]);
  });
});

function isManifest({ images }: Awaited<ReturnType<typeof readArchiveIndex>>, digest: string): boolean {
  return images.some(({ descriptor }) => descriptor.digest === digest);
}
