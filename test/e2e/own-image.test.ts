/** `npm run image`: the container image of opmate, on a base made of the Node.js and the libraries of this machine. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { chmod, cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ImageConfig, ImageIndex, ImageManifest } from '../../src/oci/image/types.js';
import { bundlesDirectory, projectRoot, useSandbox } from '../support/command-line.js';
import { indexFile } from '../support/index-file.js';

const sandbox = useSandbox();
/** Runs a program in another root directory, as a container does: as a user without name where that is possible. */
const changeRoot = process.getuid?.() === 0 ? ['chroot', '--userspec=1001:0'] : ['unshare', '-r', 'chroot'];
const canChangeRoot = spawnSync(changeRoot[0] as string, [...changeRoot.slice(1), '/', 'true']).status === 0;
const inWork = (...names: string[]): string => path.join(sandbox.work, ...names);

/** The interpreter and the libraries of a program, as paths of this machine. */
function librariesOf(program: string): string[] {
  const { stdout } = spawnSync('ldd', [program], { encoding: 'utf8' });
  return [...stdout.matchAll(/(?:=> )?(\/\S+) \(0x/g)].map((match) => match[1] as string);
}

/** Writes a layout with one image of one layer, an archive that is not compressed. */
async function writeLayout(directory: string, layer: string, config: ImageConfig['config']): Promise<void> {
  const blobs = path.join(directory, 'blobs', 'sha256');
  await mkdir(blobs, { recursive: true });
  const put = async (bytes: Buffer, mediaType: string) => {
    const hex = createHash('sha256').update(bytes).digest('hex');
    await writeFile(path.join(blobs, hex), bytes);
    return { mediaType, digest: `sha256:${hex}`, size: bytes.length };
  };
  const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
  const type = (name: string): string => `application/vnd.oci.image.${name}`;
  const content = await put(await readFile(layer), type('layer.v1.tar'));
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const rootfs = { type: 'layers', diff_ids: [content.digest] };
  const image = await put(json({ os: 'linux', architecture, config, rootfs }), type('config.v1+json'));
  const manifest = {
    schemaVersion: 2,
    mediaType: type('manifest.v1+json'),
    config: image,
    layers: [content],
  };
  const entry = await put(json(manifest), type('manifest.v1+json'));
  const index = {
    schemaVersion: 2,
    manifests: [{ ...entry, annotations: { 'org.opencontainers.image.ref.name': 'v1' } }],
  };
  await writeFile(path.join(directory, 'index.json'), json(index));
  await writeFile(path.join(directory, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
}

const compiled = path.join(projectRoot, 'node_modules/better-sqlite3/build/Release/better_sqlite3.node');
const prebuilt = path.join(projectRoot, `node_modules/better-sqlite3/prebuilds/linux-${process.arch}.node`);
const native = existsSync(compiled) ? compiled : prebuilt;

/**
 * Writes the layout `NAME/base` of an image with programs in `/usr/bin`, to which `/bin` leads, and the libraries that they
 * and better-sqlite3 are linked with.
 */
async function makeBase(name: string, programs: Record<string, string>): Promise<string> {
  const root = inWork(name, 'root');
  await mkdir(path.join(root, 'usr', 'bin'), { recursive: true });
  await mkdir(path.join(root, 'tmp'));
  await chmod(path.join(root, 'tmp'), 0o1777);
  await symlink('usr/bin', path.join(root, 'bin'));
  const add = async (file: string, place: string): Promise<void> => {
    if (existsSync(path.join(root, place))) return;
    await mkdir(path.dirname(path.join(root, place)), { recursive: true });
    await cp(realpathSync(file), path.join(root, place));
  };
  for (const [program, file] of Object.entries(programs)) await add(file, `usr/bin/${program}`);
  for (const file of [native, ...Object.values(programs)])
    for (const library of librariesOf(file)) await add(library, library);
  spawnSync('tar', ['-cf', inWork(name, 'base.tar'), '-C', root, '.']);
  await writeLayout(inWork(name, 'base'), inWork(name, 'base.tar'), {
    Env: ['PATH=/usr/bin', 'KEPT=1'],
    User: 'root',
  });
  return `oci:${name}/base:v1`;
}

/** A small file that stands for Node.js of an ABI where it is not run. */
async function makeNode(abi: string): Promise<string> {
  const header = (await readFile(native)).subarray(0, 64);
  const file = inWork(`node-${abi}`);
  await writeFile(file, Buffer.concat([header, Buffer.from(`\0node_register_module_v${abi}\0`)]));
  return file;
}

const image = (...args: string[]) =>
  spawnSync(process.execPath, [path.join(projectRoot, 'bin', 'image.js'), ...args], {
    cwd: sandbox.work,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], ...sandbox.environment() },
  });

async function readLayout(directory: string) {
  const blob = (digest: string): string => inWork(directory, 'blobs', ...digest.split(':'));
  const parse = async <T>(file: string): Promise<T> => JSON.parse(await readFile(file, 'utf8')) as T;
  const index = await parse<ImageIndex>(inWork(directory, 'index.json'));
  const [entry] = index.manifests;
  const manifest = await parse<ImageManifest>(blob(entry?.digest as string));
  const config = await parse<ImageConfig>(blob(manifest.config.digest));
  return { manifest, config, layers: manifest.layers.map(({ digest }) => blob(digest)) };
}

describe('npm run image', () => {
  it('builds a reproducible image for a numeric user, with its provenance', async () => {
    const base = await makeBase('whole', { sh: '/bin/sh', node: process.execPath });
    const [first, second] = ['one', 'two'].map((to) =>
      image('--base', base, '--to', `oci:${to}:v1`, '--source', 'https://example.com/opmate'),
    );
    expect(first).toMatchObject({ status: 0, stderr: '' });
    expect(first?.stdout).toMatch(/^oci:one@sha256:[0-9a-f]{64}\n$/);
    expect(second?.stdout).toBe(first?.stdout.replace('oci:one', 'oci:two'));
    const { config } = await readLayout('one');
    const project = await readFile(path.join(projectRoot, 'package.json'), 'utf8');
    const { version } = JSON.parse(project) as { version: string };
    expect(config.config).toMatchObject({
      User: '1001',
      Entrypoint: ['/bin/opm'],
      WorkingDir: '/home/opmate',
      Env: ['PATH=/usr/bin', 'KEPT=1', 'HOME=/home/opmate'],
    });
    expect(config.config?.Labels).toMatchObject({
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.source': 'https://example.com/opmate',
      'org.opencontainers.image.created': config.created,
      'org.opencontainers.image.base.name': base,
    });
  });

  it.skipIf(!canChangeRoot)('contains opmate, opm and the probe, which run in it', async () => {
    const { layers } = await readLayout('one');
    const root = inWork('unpacked');
    await mkdir(root);
    for (const layer of layers) expect(spawnSync('tar', ['-xpf', layer, '-C', root]).status).toBe(0);
    const bundle = path.join(bundlesDirectory, 'microcks', '0.2.1');
    await cp(bundle, path.join(root, 'bundle'), { recursive: true });
    const [program, ...options] = changeRoot as [string, ...string[]];
    const inside = (...command: string[]) =>
      spawnSync(program, [...options, root, ...command], {
        encoding: 'utf8',
        env: { PATH: '/usr/sbin:/usr/bin:/bin', HOME: '/home/opmate' },
      });
    expect(inside('/bin/opm', 'version')).toMatchObject({ status: 0, stderr: '' });
    const template = ['--alpha-image-ref-template', 'example.com/b:v1'];
    const rendered = inside('/bin/opmate', 'render', '/bundle', ...template);
    expect(rendered).toMatchObject({ status: 0, stderr: '' });
    expect(rendered.stdout).toBe((await sandbox.run(['render', bundle, ...template])).stdout);
    await cp(await indexFile(), path.join(root, 'index.db'));
    expect(inside('/bin/opm', 'migrate', '/index.db', '/home/opmate/catalog').status).toBe(0);
    expect(existsSync(path.join(root, 'home/opmate/catalog/widget/catalog.json'))).toBe(true);
    expect(inside('/bin/grpc_health_probe', '-addr=127.0.0.1:1', '-connect-timeout=1s').status).toBe(2);
  });

  it('refuses a base without a shell or a supported Node.js, and writes nothing', async () => {
    const sh = '/bin/sh';
    const refusalOf = async (name: string, programs: Record<string, string>): Promise<string> =>
      image('--base', await makeBase(name, programs), '--to', 'oci:never:v1').stderr;
    expect(await refusalOf('no-shell', { node: await makeNode('999') })).toContain(
      '/bin/sh not found\nhint: ',
    );
    expect(await refusalOf('no-node', { sh })).toContain('node not found in its PATH\nhint: ');
    const [abi, problem] =
      native === compiled ? ['999', 'is for ABI \\d+'] : ['115', 'needs Node\\.js 22 or later'];
    expect(await refusalOf('other', { sh, node: await makeNode(abi) })).toMatch(
      new RegExp(`Node\\.js with ABI ${abi}, but better_sqlite3\\.node ${problem}\nhint: `),
    );
    expect(existsSync(inWork('never'))).toBe(false);
  });

  it('requires a base, and a destination with a registry', () => {
    expect(image('--base', 'oci:whole/base:v1')).toMatchObject({ status: 2, stdout: '' });
    const { stderr } = image('--base', 'oci:whole/base:v1', '--to', 'opmate:v1');
    expect(stderr).toContain('missing registry');
  });
});
