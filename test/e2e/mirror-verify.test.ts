import { readFile, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseLock } from '../../src/mirror/lock/parse-lock.js';
import { readArchiveIndex } from '../../src/oci/archive-set/archive-index.js';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { pemPair } from '../support/sigstore.js';

const sandbox = useSandbox();
const own = pemPair();
const other = pemPair();
let source: DockerRegistry;
let target: DockerRegistry;

const blob = (name: string): string =>
  [
    { schema: 'olm.package', name, defaultChannel: 'stable' },
    { schema: 'olm.channel', package: name, name: 'stable', entries: [{ name: `${name}.v1.0.0` }] },
    {
      ...{
        schema: 'olm.bundle',
        package: name,
        name: `${name}.v1.0.0`,
        image: `${source.host}/demo/widget:v1`,
      },
      properties: [{ type: 'olm.package', value: { packageName: name, version: '1.0.0' } }],
    },
  ]
    .map((one) => JSON.stringify(one))
    .join('\n');

const opmate = (...args: string[]) => sandbox.run([...args, '--use-http']);
const mirror = (...args: string[]) => opmate('mirror', ...args);

async function build(name: string, ...args: string[]): Promise<void> {
  const built = await opmate(
    'catalog',
    'build',
    'files',
    '-i',
    'scratch',
    '--platforms',
    'linux/amd64,linux/arm64',
    '-t',
    `${source.host}/demo/${name}:v1`,
    ...args,
  );
  expect(built).toMatchObject({ code: 0 });
}

const config = (body: string): string =>
  `kind: ImageSetConfiguration\napiVersion: mirror.openshift.io/v2alpha1\nmirror:\n${body}`;
const images = (...names: string[]): string =>
  config(
    `  additionalImages:\n${names.map((name) => `  - name: ${source.host}/demo/${name}:v1\n`).join('')}`,
  );

/** Repositories and tags of a registry. */
async function contents(host: string): Promise<string[]> {
  const read = async (at: string) =>
    (await (await fetch(`http://${host}/v2/${at}`)).json()) as Record<string, string[]>;
  const { repositories = [] } = await read('_catalog');
  const tags = await Promise.all(
    repositories.map(async (name) => (await read(`${name}/tags/list`))['tags'] ?? []),
  );
  return repositories.flatMap((name, i) => (tags[i] ?? []).map((tag) => `${name}:${tag}`));
}

const verdictsIn = (text: string): [string, string | undefined][] =>
  parseLock(text, 'lock')
    .images.filter(({ kind }) => kind !== 'signature')
    .map(({ reference, verification }) => [reference.replace(/^.*\/demo\//, ''), verification?.status]);

beforeAll(async () => {
  if (!hasDockerRegistry) return;
  source = await startDockerRegistry();
  target = await startDockerRegistry();
  await sandbox.write({
    'files/catalog.json': `${blob('widget')}\n${blob('gadget')}`,
    ...{ 'own.key': own.privateKey, 'own.pub': own.publicKey, 'other.pub': other.publicKey },
    'signed.yaml': images('widget'),
    'mixed.yaml': images('widget', 'plain'),
    'part.yaml': config(
      `  operators:\n  - catalog: ${source.host}/demo/catalog:v1\n    packages:\n    - name: widget\n`,
    ),
  });
  for (const name of ['widget', 'catalog']) await build(name, '--sign-by', 'own.key');
  await build('plain');
});
afterAll(async () => {
  await source?.close();
  await target?.close();
});

describe.skipIf(!hasDockerRegistry)('mirror --verify', () => {
  it('strict copies signed images, and records the verdict in the lock and the archive', async () => {
    const result = await mirror('-c', 'signed.yaml', 'file://carry', '--key', 'own.pub');
    expect(result).toMatchObject({ code: 0 });
    expect(result.stderr).toContain('signatures: 1 image verified or accepted, 0 not');
    const { lock } = await readArchiveIndex(path.join(sandbox.work, 'carry'));
    expect(verdictsIn(lock)).toEqual([['widget:v1', 'verified']]);
    const saved = await readFile(path.join(sandbox.work, 'carry/working-dir/opmate.lock.json'), 'utf8');
    expect(verdictsIn(saved)).toEqual([['widget:v1', 'verified']]);
  });

  it('verifies an archive again without the source, and refuses another key', async () => {
    const moved = await startDockerRegistry();
    try {
      const policy = {
        default: [{ type: 'reject' }],
        transports: {
          docker: {
            [`${source.host}/demo`]: [
              { type: 'sigstoreSigned', keyPath: path.join(sandbox.work, 'own.pub') },
            ],
          },
        },
      };
      await sandbox.write({ 'policy.json': JSON.stringify(policy) });
      const from = (...args: string[]) => mirror('--from', 'carry', `docker://${moved.host}/olm`, ...args);
      const refused = await from('--verify', 'strict', '--key', 'other.pub');
      expect(refused.code).toBe(1);
      expect(refused.stderr).toMatch(/demo\/widget:v1: refused: .*not signed by the key/);
      expect(await contents(moved.host)).toEqual([]);
      expect(await from('--verify', 'strict', '--policy', 'policy.json')).toMatchObject({ code: 0 });
      expect((await contents(moved.host)).filter((name) => name.endsWith('.sig'))).toHaveLength(3);
    } finally {
      await moved.close();
    }
  });

  it('strict copies nothing when one image is unsigned, and names each', async () => {
    for (const destination of ['file://refused', `docker://${target.host}/olm`]) {
      const result = await mirror('-c', 'mixed.yaml', destination, '--verify', 'strict', '--key', 'own.pub');
      expect(result.code).toBe(1);
      expect(result.stderr).toContain(`${source.host}/demo/plain:v1: unsigned: `);
      expect(result.stderr).not.toContain('demo/widget:v1: ');
    }
    expect(await contents(target.host)).toEqual([]);
    expect(await readdir(sandbox.work)).not.toContain('refused');
  });

  it('report copies all images and lists the unverified ones', async () => {
    const result = await mirror(
      '-c',
      'mixed.yaml',
      `docker://${target.host}/olm`,
      '--verify',
      'report',
      '--key',
      'own.pub',
    );
    expect(result.code).toBe(0);
    expect(result.stderr).toContain(`${source.host}/demo/plain:v1: unsigned: `);
    expect(result.stderr).toContain('signatures: 1 image verified or accepted, 1 not');
    const names = await contents(target.host);
    expect(names).toEqual(expect.arrayContaining(['olm/demo/widget:v1', 'olm/demo/plain:v1']));
    const lock = await readFile(path.join(sandbox.work, 'working-dir/opmate.lock.json'), 'utf8');
    expect(verdictsIn(lock).sort()).toEqual([
      ['plain:v1', 'unsigned'],
      ['widget:v1', 'verified'],
    ]);
    await rm(path.join(sandbox.work, 'working-dir'), { recursive: true });
  });

  it('verifies a filtered catalog by its source catalog', async () => {
    const written = await mirror('-c', 'part.yaml', 'file://part', '--verify', 'strict', '--key', 'own.pub');
    expect(written).toMatchObject({ code: 0 });
    const { lock } = await readArchiveIndex(path.join(sandbox.work, 'part'));
    const verdicts = verdictsIn(lock);
    expect(verdicts).toEqual(expect.arrayContaining([['catalog:v1', 'verified']]));
    const again = await mirror(
      '--from',
      'part',
      `docker://${target.host}/part`,
      '--verify',
      'strict',
      '--key',
      'own.pub',
    );
    expect(again).toMatchObject({ code: 0 });
    const foreign = await mirror(
      '-c',
      'part.yaml',
      'file://foreign',
      '--verify',
      'strict',
      '--key',
      'other.pub',
    );
    expect(foreign.code).toBe(1);
    expect(foreign.stderr).toContain('demo/catalog:v1: refused: rebuilt from sha256:');
  });

  it('verifies the images of a lock', async () => {
    expect(await mirror('plan', '-c', 'mixed.yaml', `docker://${target.host}/locked`)).toMatchObject({
      code: 0,
    });
    const locked = (...args: string[]) =>
      mirror('-c', 'mixed.yaml', '--locked', `docker://${target.host}/locked`, ...args);
    const refused = await locked('--verify', 'strict', '--key', 'own.pub');
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('demo/plain:v1: unsigned: ');
    expect((await contents(target.host)).filter((name) => name.startsWith('locked/'))).toEqual([]);
    expect(await locked('--verify', 'report', '--key', 'own.pub')).toMatchObject({ code: 0 });
  });

  it.each([
    [['--verify', 'strict'], '--verify "strict": no signature policy'],
    [['--key', 'own.pub', '--remove-signatures'], '--verify and --remove-signatures cannot be used together'],
    [['--policy', 'none.json'], 'none.json: no such file or directory'],
    [['--verify', 'sometimes'], 'sometimes'],
  ])('refuses %j', async (args, problem) => {
    const result = await mirror('-c', 'signed.yaml', 'file://never', ...args);
    expect(result.code).not.toBe(0);
    expect(result.stderr).toContain(problem);
  });
});
