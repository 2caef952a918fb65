/** `npm run image`: the container image of opmate, on a base made of the Node.js and the libraries of this machine. */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, realpathSync } from 'node:fs';
import { chmod, cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ImageConfig, ImageIndex, ImageManifest } from '../../src/oci/image/types.js';
import { catalogOf } from '../e2e/catalogs.js';
import {
  bundlesDirectory,
  commandFile,
  isExecutable,
  projectRoot,
  useSandbox,
} from '../support/command-line.js';
import { startDockerRegistry } from '../support/docker-registry.js';
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

const architecture = process.arch === 'x64' ? 'amd64' : process.arch;

/** Writes a layout of an image for each platform, by architecture: one layer, an archive that is not compressed. */
async function writeLayout(
  directory: string,
  layers: Record<string, string>,
  config: ImageConfig['config'],
): Promise<void> {
  const blobs = path.join(directory, 'blobs', 'sha256');
  await mkdir(blobs, { recursive: true });
  const type = (name: string): string => `application/vnd.oci.image.${name}`;
  const put = async (content: Buffer | object, mediaType: string) => {
    const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
    const hex = createHash('sha256').update(bytes).digest('hex');
    await writeFile(path.join(blobs, hex), bytes);
    return { mediaType, digest: `sha256:${hex}`, size: bytes.length };
  };
  const manifests = [];
  for (const [name, layer] of Object.entries(layers)) {
    const content = await put(await readFile(layer), type('layer.v1.tar'));
    const rootfs = { type: 'layers', diff_ids: [content.digest] };
    const mediaType = type('manifest.v1+json');
    const image = await put({ os: 'linux', architecture: name, config, rootfs }, type('config.v1+json'));
    const manifest = await put({ schemaVersion: 2, mediaType, config: image, layers: [content] }, mediaType);
    manifests.push({ ...manifest, platform: { os: 'linux', architecture: name } });
  }
  const mediaType = type('index.v1+json');
  const entry =
    manifests.length === 1 ? manifests[0] : await put({ schemaVersion: 2, mediaType, manifests }, mediaType);
  const named = { ...entry, annotations: { 'org.opencontainers.image.ref.name': 'v1' } };
  await writeFile(
    path.join(directory, 'index.json'),
    JSON.stringify({ schemaVersion: 2, manifests: [named] }),
  );
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
  await writeLayout(
    inWork(name, 'base'),
    { [architecture]: inWork(name, 'base.tar') },
    {
      Env: ['PATH=/usr/bin', 'KEPT=1'],
      User: 'root',
    },
  );
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

// The package is inside, whatever the command of the other tests is.
describe.skipIf(isExecutable)('npm run image', () => {
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

/** Built by `npm run executable`, where its parts are at hand. */
describe.skipIf(!isExecutable)('npm run image -- --executable', () => {
  const run = (command: string, ...args: string[]) =>
    spawnSync(command, args, { cwd: sandbox.work, encoding: 'utf8', env: { PATH: process.env['PATH'] } });

  /** Writes a base for amd64, of libraries of this machine, and one for arm64, of names of symbol versions only. */
  async function makeBases(): Promise<string> {
    const root = inWork('bases', 'amd64');
    for (const library of librariesOf(commandFile)) {
      await mkdir(path.dirname(path.join(root, library)), { recursive: true });
      await cp(realpathSync(library), path.join(root, library));
    }
    const versions = (prefix: string, ...numbers: (number | string)[]) =>
      numbers.map((n) => `${prefix}_${n}`);
    const symbols = [
      ...versions('GLIBC', ...[17, 23, 25, 27, 28].map((minor) => `2.${minor}`)),
      ...versions('GLIBCXX', '3.4', ...[9, 11, 14, 15, 17, 18, 19, 20, 21].map((patch) => `3.4.${patch}`)),
      ...versions('CXXABI', '1.3', ...[5, 7, 8, 9, 11].map((patch) => `1.3.${patch}`)),
      'GCC_3.0',
    ];
    const libraries = inWork('bases', 'arm64', 'usr', 'lib', 'aarch64-linux-gnu');
    await mkdir(libraries, { recursive: true });
    const names = ['c.so.6', 'dl.so.2', 'm.so.6', 'pthread.so.0', 'stdc++.so.6', 'gcc_s.so.1'];
    for (const name of [...names.map((text) => `lib${text}`), 'ld-linux-aarch64.so.1'])
      await writeFile(path.join(libraries, name), `${symbols.join('\0')}\0`);
    const layers: Record<string, string> = {};
    for (const name of ['amd64', 'arm64']) {
      await mkdir(inWork('bases', name, 'tmp'));
      await chmod(inWork('bases', name, 'tmp'), 0o1777);
      layers[name] = inWork('bases', `${name}.tar`);
      run('tar', '-cf', layers[name], '-C', inWork('bases', name), '.');
    }
    await writeLayout(inWork('bases', 'layout'), layers, {});
    return 'oci:bases/layout:v1';
  }

  it('builds an index for amd64 and arm64, which catalog images are based on', async () => {
    const platforms = ['--platform', 'linux/amd64,linux/arm64'];
    const built = image('--executable', '--base', await makeBases(), '--to', 'oci:opmate:v1', ...platforms);
    expect(built).toMatchObject({ status: 0 });
    const index = JSON.parse(run('skopeo', 'inspect', '--raw', 'oci:opmate:v1').stdout) as ImageIndex;
    expect(index.manifests.map(({ platform }) => platform?.architecture)).toEqual(['amd64', 'arm64']);
    await sandbox.write({ 'catalog/widget/catalog.json': catalogOf('widget', [{ name: 'widget.v1.0.0' }]) });
    const save = ['-i', 'oci:opmate:v1', '--cache', '--save', 'oci:catalog-image:v1'];
    expect(await sandbox.run(['catalog', 'build', 'catalog', ...save])).toMatchObject({ code: 0 });
    const inspected = JSON.parse(
      run('skopeo', '--override-arch', 'amd64', 'inspect', '--config', 'oci:catalog-image:v1').stdout,
    ) as ImageConfig;
    expect(inspected.config).toMatchObject({
      User: '1001',
      Entrypoint: ['/bin/opm'],
      Cmd: ['serve', '/configs', '--cache-dir=/tmp/cache'],
    });
  });

  it.skipIf(!canChangeRoot || architecture !== 'amd64')(
    'serves the catalog on a root that nobody can write, without a shell',
    async () => {
      const copied = ['--override-arch', 'amd64', 'copy', 'oci:catalog-image:v1', 'dir:unpacked-image'];
      expect(run('skopeo', ...copied)).toMatchObject({ status: 0 });
      const { layers } = JSON.parse(
        await readFile(inWork('unpacked-image', 'manifest.json'), 'utf8'),
      ) as ImageManifest;
      const root = inWork('catalog-root');
      await mkdir(root);
      for (const { digest } of layers)
        run('tar', '-xpf', inWork('unpacked-image', digest.replace('sha256:', '')), '-C', root);
      expect(existsSync(path.join(root, 'bin', 'sh'))).toBe(false);
      const isRoot = process.getuid?.() === 0;
      const script = `mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec chroot --userspec=${isRoot ? 1001 : 0}:0 "$0" "$@"`;
      const inside = [...(isRoot ? [] : ['-r']), '-m', 'sh', '-c', script, root];
      const serve = ['/bin/opm', 'serve', '/configs', '--cache-dir=/tmp/cache', '--port=0'];
      const server = spawn('unshare', [...inside, ...serve], { stdio: ['ignore', 'ignore', 'pipe'] });
      const ended = once(server, 'close');
      try {
        let text = '';
        for await (const chunk of server.stderr) {
          text += String(chunk);
          if (text.includes('next:')) break;
        }
        const port = / port=(\d+) /.exec(text)?.[1];
        expect(port, text).toBeDefined();
        const probe = ['/bin/grpc_health_probe', `-addr=127.0.0.1:${port}`];
        expect(run('unshare', ...inside, ...probe)).toMatchObject({ status: 0 });
      } finally {
        server.kill();
        await ended;
      }
    },
  );

  it('refuses a tag of a registry as base, and a base without libraries', async () => {
    const refusalOf = (base: string) => {
      const { status, stderr } = image('--executable', '--use-http', '--base', base, '--to', 'oci:never:v1');
      expect(status).not.toBe(0);
      return stderr;
    };
    expect(refusalOf(await makeBase('poor', {}))).toMatch(
      /: libdl\.so\.2, libpthread\.so\.0 not found, which the executable requires\nhint: /,
    );
    const registry = await startDockerRegistry();
    try {
      const name = `${registry.host}/base`;
      run('skopeo', 'copy', '--dest-tls-verify=false', 'oci:poor/base:v1', `docker://${name}:v1`);
      expect(refusalOf(`${name}:v1`)).toMatch(
        new RegExp(`^error: --base ${name}:v1: no digest\nhint: use --base ${name}@sha256:[0-9a-f]{64}\n$`),
      );
    } finally {
      await registry.close();
    }
  });
});
