import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { lstat, mkdir, mkdtemp, readFile, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { catalogOf } from '../e2e/catalogs.js';
import { bundlesDirectory, projectRoot } from '../support/command-line.js';
import { smallBundle } from '../support/small-bundle.js';
import { busy } from '../support/waiting.js';
import { copyTree, directoryWith } from '../support/temporary.js';

/** What `npm pack --json` prints of a package. */
interface Packed {
  filename: string;
  /** Of the archive, in bytes. */
  size: number;
  files: { path: string }[];
}

let root: string;
let packed: Packed;
let prefix: string;
let installed: string;
beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'opmate-pack-'));
  for (const name of ['package.json', 'package-lock.json', 'bin', 'lib', 'dist', 'schemas'])
    await copyTree(path.join(projectRoot, name), path.join(root, name));
  execFileSync(process.execPath, [path.join(root, 'bin', 'stamp-build.js')]);
  const npm = (...args: string[]): string =>
    execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  [packed] = JSON.parse(npm('pack', '--json', '--ignore-scripts')) as [Packed];
  prefix = path.join(root, 'prefix');
  // Its native part is compiled where there is none to download, for minutes: that of the project is taken.
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'];
  npm('install', '--global', '--prefix', prefix, ...quiet, path.join(root, packed.filename));
  installed = path.join(prefix, 'lib', 'node_modules', 'opmate');
  const native = path.join('node_modules', 'better-sqlite3', 'build', 'Release');
  if (existsSync(path.join(projectRoot, native, 'better_sqlite3.node'))) {
    await mkdir(path.join(installed, native), { recursive: true });
    await copyTree(path.join(projectRoot, native, 'better_sqlite3.node'), path.join(installed, native));
  }
});
afterAll(() => rm(root, { recursive: true, force: true }));

describe('the package', () => {
  it('is installed with the tested release of better-sqlite3 for this Node.js', async () => {
    const readVersion = async (directory: string): Promise<unknown> => {
      const file = path.join(directory, 'node_modules', 'better-sqlite3', 'package.json');
      return (JSON.parse(await readFile(file, 'utf8')) as { version: unknown }).version;
    };
    expect(await readVersion(installed)).toBe(await readVersion(projectRoot));
  });

  it.skipIf(Number.parseInt(process.versions.node, 10) >= 22)(
    'says that the release of better-sqlite3 for later versions of Node.js does not fit',
    async () => {
      const modules = path.join(root, 'later', 'node_modules');
      await mkdir(modules, { recursive: true });
      await copyTree(installed, path.join(modules, 'opmate'));
      const sqlite = path.join(modules, 'opmate', 'node_modules', 'better-sqlite3');
      await rm(sqlite, { recursive: true });
      await mkdir(sqlite);
      const archive = execFileSync('npm', ['pack', '--silent', 'better-sqlite3@13.2.0'], { cwd: root });
      execFileSync('tar', ['-xzf', archive.toString().trim(), '--strip-components=1', '-C', sqlite], {
        cwd: root,
      });
      const program = path.join(modules, 'opmate', 'bin', 'opmate.cjs');
      const to = path.join(root, 'later.db');
      const run = spawnSync(process.execPath, [program, 'registry', 'init', '--to', to], {
        encoding: 'utf8',
      });
      expect(run).toMatchObject({ status: 1, stdout: '' });
      expect(run.stderr).toMatch(
        /better-sqlite3: release 13\.2\.0 needs Node\.js 22 or later.*\nhint: install opmate again with the version of Node\.js that runs it/,
      );
      expect(existsSync(to)).toBe(false);
    },
  );

  it.each([
    [
      'whose install script did not run',
      'build',
      'its install script did not run',
      'run npm rebuild better-sqlite3, or install opmate with Node.js 22 or later',
    ],
    [
      'that is not installed',
      '.',
      'not installed',
      'run npm install better-sqlite3; before Node.js 22, it needs a C++ compiler',
    ],
  ])('needs better-sqlite3 for databases only, and names one %s', async (_, part, problem, hint) => {
    // Releases for later versions of Node.js carry compiled modules, and have no install script.
    if (part === 'build' && Number.parseInt(process.versions.node, 10) >= 22) return;
    const modules = await mkdtemp(path.join(root, 'without-'));
    await copyTree(installed, path.join(modules, 'opmate'));
    const sqlite = path.join(modules, 'opmate', 'node_modules', 'better-sqlite3');
    for (const name of part === 'build' ? ['build', 'prebuilds'] : [part])
      await rm(path.join(sqlite, name), { recursive: true, force: true });
    const program = path.join(modules, 'opmate', 'bin', 'opmate.cjs');
    const run = (...args: string[]) => spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
    expect(run('registry', 'init', '--to', path.join(root, 'none.db'))).toMatchObject({
      status: 1,
      stdout: '',
      stderr: `error: sqlite databases cannot be opened: better-sqlite3: ${problem}\nhint: ${hint}\n`,
    });
    expect(run('render', path.join(bundlesDirectory, 'skupper-operator', '1.9.0'))).toMatchObject({
      status: 0,
    });
  });

  it('contains the build data of version, in at most 3 MB', () => {
    const names = packed.files.map((file) => file.path);
    expect(names).toEqual(expect.arrayContaining(['dist/build.json', 'bin/opmate.cjs']));
    expect(names).not.toContain('package-lock.json');
    expect(names.filter((name) => name.endsWith('.cache') || name.startsWith('src/'))).toEqual([]);
    expect(packed.size).toBeLessThan(3_000_000);
  });

  it('takes at most 40 MB installed', async () => {
    let bytes = 0;
    for (const name of await readdir(prefix, { recursive: true })) {
      const stats = await lstat(path.join(prefix, name));
      if (stats.isFile()) bytes += stats.size;
    }
    expect(bytes).toBeGreaterThan(packed.size);
    expect(bytes).toBeLessThan(40_000_000);
  });

  it('contains the licenses of bundled packages', async () => {
    const notices = await readFile(path.join(root, 'lib', 'THIRD-PARTY-NOTICES'), 'utf8');
    for (const name of ['@grpc/grpc-js', 'commander', 'graphql', 'node-fetch', 'tar-stream'])
      expect(notices).toMatch(new RegExp(`^${name} [0-9.]+ \\(\\S+\\)\n\n\\S`, 'm'));
  });

  it('runs when installed globally, from any directory, without bundled packages as dependencies', async () => {
    const packages = await readdir(path.join(installed, 'node_modules'));
    expect(packages).not.toContain('commander');
    expect(packages.length).toBeLessThan(45);
    const opmate = (...args: string[]) =>
      spawnSync(path.join(prefix, 'bin', 'opmate'), args, { cwd: tmpdir(), encoding: 'utf8' });
    expect(opmate('version').stdout).toContain('OpmVersion:');
    expect(opmate('registry', 'init', '-o', path.join(root, 'x.db')).stderr).not.toContain('ERR_MODULE');
    const bundle = await directoryWith(smallBundle());
    const catalog = await directoryWith({ 'catalog.json': catalogOf('widget', [{ name: 'widget.v1.0.0' }]) });
    expect(opmate('render', bundle)).toMatchObject({ status: 0, stderr: '' });
    expect(opmate('index', 'add', '--help').status).toBe(0);
    const saved = opmate(
      'catalog',
      'build',
      catalog,
      '-i',
      'scratch',
      '--save',
      `oci:${path.join(root, 'image')}:v1`,
    );
    expect(saved).toMatchObject({ status: 0 });
    const once = ['render', 'registry.example.com/a/b:v1', '--retry-timeout', '0'];
    const proxied = spawnSync(path.join(prefix, 'bin', 'opmate'), once, {
      env: { ...process.env, HTTPS_PROXY: 'http://127.0.0.1:9' },
      encoding: 'utf8',
    });
    expect(proxied.stderr).toMatch(/127\.0\.0\.1:9/);
    expect(proxied.stderr).not.toContain('internal error');
    const { stderr } = opmate('validate', path.join(root, 'missing'), '--debug');
    expect(stderr).toMatch(/src[/\\]cli[/\\]root[/\\]validate\.ts:\d+/);
    const [, line] = /src[/\\]api[/\\]validate-catalog\.ts:(\d+)/.exec(stderr) ?? [];
    const source = await readFile(path.join(projectRoot, 'src', 'api', 'validate-catalog.ts'), 'utf8');
    expect(source.split('\n')[Number(line) - 1]).toContain("throw new OpmateError('NOT_FOUND'");
  });

  it('writes the code cache of a server once it has started, and not again at its end', async () => {
    const catalog = await directoryWith({ 'catalog.json': catalogOf('widget', [{ name: 'widget.v1.0.0' }]) });
    const lib = path.join(installed, 'lib');
    const readCaches = async () => {
      const names = (await readdir(lib)).filter((name) => name.endsWith('-serve.cache'));
      return await Promise.all(names.map(async (name) => (await stat(path.join(lib, name))).mtimeMs));
    };
    const args = ['serve', catalog, '--host', '127.0.0.1', '-p', '0'];
    const server = spawn(path.join(prefix, 'bin', 'opmate'), args, { stdio: 'ignore' });
    const ended = once(server, 'close');
    await vi.waitUntil(async () => (await readCaches()).length > 0, busy);
    const written = await readCaches();
    server.kill();
    expect(await ended).toEqual([0, null]);
    expect(await readCaches()).toEqual(written);
  });

  it('writes the code cache of a command that fails, unless it is mistyped', async () => {
    const listCaches = async () =>
      (await readdir(path.join(installed, 'lib')))
        .filter((name) => name.endsWith('.cache'))
        .map((name) => name.replace(/^program-.*-/, ''));
    const opmate = (...args: string[]) =>
      spawnSync(path.join(prefix, 'bin', 'opmate'), args, { encoding: 'utf8' });
    const mistyped = opmate('mirrr');
    expect(mistyped).toMatchObject({ status: 2 });
    expect(await listCaches()).not.toContain('mirrr.failed.cache');
    const first = opmate('mirror', 'plan');
    expect(first).toMatchObject({ status: 2 });
    expect(await listCaches()).toEqual(expect.arrayContaining(['start.any.cache', 'mirror.failed.cache']));
    expect(opmate('mirror', 'plan').stderr).toBe(first.stderr);
  });

  it('installs one command and its man pages, and never takes the name opm', async () => {
    expect(await readdir(path.join(prefix, 'bin'))).toEqual(['opmate']);
    const pages = await readdir(path.join(prefix, 'share', 'man', 'man1'));
    expect(pages).toEqual(expect.arrayContaining(['opmate.1', 'opmate-render.1', 'opmate-mirror.1']));
    expect(pages.filter((page) => !page.startsWith('opmate'))).toEqual([]);
  });

  it('is a library whose types need only those of Node.js', async () => {
    const consumer = path.join(root, 'consumer');
    await mkdir(path.join(consumer, 'node_modules', '@types'), { recursive: true });
    await symlink(installed, path.join(consumer, 'node_modules', 'opmate'));
    const types = path.join('node_modules', '@types', 'node');
    await symlink(path.join(projectRoot, types), path.join(consumer, types));
    const program = path.join(consumer, 'program.mts');
    const typed = `import { openIndex, openSession, parseReference } from 'opmate';
      export type Tag = ReturnType<typeof parseReference>['tag'];
      export const results: [typeof openIndex, Tag] = [openIndex, parseReference('quay.io/a/b:v1').tag];
      await (await openSession()).close();
      console.log(results[1]);`;
    await writeFile(program, typed);
    const tsc = path.join(projectRoot, 'node_modules', 'typescript', 'bin', 'tsc');
    const strict = [
      '--strict',
      '--target',
      'es2023',
      '--lib',
      'es2023',
      '--module',
      'nodenext',
      '--types',
      'node',
    ];
    const compiled = spawnSync(process.execPath, [tsc, ...strict, program], {
      cwd: consumer,
      encoding: 'utf8',
    });
    expect(compiled.stdout).toBe('');
    const output = execFileSync(process.execPath, ['program.mjs'], { cwd: consumer, encoding: 'utf8' });
    expect(output).toBe('v1\n');
  });

  it('has no commit without git', async () => {
    expect(JSON.parse(await readFile(path.join(root, 'dist', 'build.json'), 'utf8'))).toEqual({
      commit: '',
      date: '',
    });
  });
});
