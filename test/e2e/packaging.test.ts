import { execFileSync, spawnSync } from 'node:child_process';
import { cp, mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { catalogOf } from './catalogs.js';
import { projectRoot } from '../support/command-line.js';
import { smallBundle } from '../support/small-bundle.js';
import { directoryWith } from '../support/temporary.js';

interface Lock {
  packages: Record<string, { version?: string; dev?: boolean; devDependencies?: object }>;
}

let root: string;
beforeAll(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'opmate-pack-'));
  for (const name of ['package.json', 'package-lock.json', 'bin', 'lib', 'dist', 'schemas'])
    await cp(path.join(projectRoot, name), path.join(root, name), { recursive: true });
  execFileSync(process.execPath, [path.join(root, 'bin', 'stamp-build.js'), '--shrinkwrap']);
});
afterAll(() => rm(root, { recursive: true, force: true }));

const readLock = async (name: string): Promise<Lock> =>
  JSON.parse(await readFile(path.join(root, name), 'utf8')) as Lock;

describe('the package', () => {
  it('pins what it is installed with to what it is tested with', async () => {
    const [lock, shrinkwrap] = [await readLock('package-lock.json'), await readLock('npm-shrinkwrap.json')];
    expect(shrinkwrap.packages['']?.devDependencies).toBeUndefined();
    expect(shrinkwrap.packages['node_modules/vitest']).toBeUndefined();
    expect(shrinkwrap.packages['node_modules/better-sqlite3']?.version).toBe(
      lock.packages['node_modules/better-sqlite3']?.version,
    );
    const published = Object.keys(lock.packages).filter((name) => !lock.packages[name]?.dev);
    expect(Object.keys(shrinkwrap.packages)).toEqual(published);
  });

  it('contains the shrinkwrap, and what version knows of the build', () => {
    const [{ files }] = JSON.parse(
      execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
        cwd: root,
        encoding: 'utf8',
      }),
    ) as [{ files: { path: string }[] }];
    const names = files.map((file) => file.path);
    expect(names).toEqual(
      expect.arrayContaining(['npm-shrinkwrap.json', 'dist/build.json', 'bin/opmate.js']),
    );
    expect(names).not.toContain('package-lock.json');
  });

  it('carries the licenses of what is bundled', async () => {
    const notices = await readFile(path.join(root, 'lib', 'THIRD-PARTY-NOTICES'), 'utf8');
    for (const name of ['@grpc/grpc-js', 'commander', 'graphql', 'node-fetch', 'tar-stream'])
      expect(notices).toMatch(new RegExp(`^${name} [0-9.]+ \\(\\S+\\)\n\n\\S`, 'm'));
  });

  it('runs where it is installed globally, from any directory, with no bundled package beside it', async () => {
    const npm = (...args: string[]): string =>
      execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    const [{ filename }] = JSON.parse(npm('pack', '--json', '--ignore-scripts')) as [{ filename: string }];
    const prefix = path.join(root, 'prefix');
    // Its native part is compiled where there is none to download, for minutes: that of the project is taken.
    const quiet = ['--ignore-scripts', '--no-audit', '--no-fund'];
    npm('install', '--global', '--prefix', prefix, ...quiet, path.join(root, filename));
    const installed = path.join(prefix, 'lib', 'node_modules', 'opmate');
    const native = path.join('node_modules', 'better-sqlite3', 'build', 'Release', 'better_sqlite3.node');
    await cp(path.join(projectRoot, native), path.join(installed, native), { recursive: true });
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
    const proxied = spawnSync(path.join(prefix, 'bin', 'opmate'), ['render', 'registry.example.com/a/b:v1'], {
      env: { ...process.env, HTTPS_PROXY: 'http://127.0.0.1:9' },
      encoding: 'utf8',
    });
    expect(proxied.stderr).toMatch(/127\.0\.0\.1:9/);
    expect(proxied.stderr).not.toContain('internal error');
    const { stderr } = opmate('validate', path.join(root, 'missing'), '--debug');
    expect(stderr).toMatch(/src[/\\]cli[/\\]root[/\\]validate\.ts:\d+/);
    const library = `import { parseReference } from ${JSON.stringify(path.join(installed, 'lib/index.js'))};
      console.log(parseReference('quay.io/a/b:v1').tag)`;
    expect(execFileSync(process.execPath, ['--input-type=module', '-e', library], { encoding: 'utf8' })).toBe(
      'v1\n',
    );
  });

  it('knows no commit where there is no git', async () => {
    expect(JSON.parse(await readFile(path.join(root, 'dist', 'build.json'), 'utf8'))).toEqual({
      commit: '',
      date: '',
    });
  });
});
