import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, readFile, readdir, rm, stat, symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { bundlesDirectory, commandFile, projectRoot, useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();
/** A blob, with the files of its assets by name. */
interface Blob {
  blob: string;
  assets: Record<string, string>;
}
const importBuilder = async <T>(name: string): Promise<T> =>
  (await import(path.join(projectRoot, 'bin', 'executable', name))) as T;
const executable = process.env['OPMATE_EXECUTABLE'];

/** Built by `npm run executable`; everywhere else these tests have nothing to run. */
describe.skipIf(executable === undefined)('the executable', () => {
  it('needs no file of opmate, no Node.js and no PATH', async () => {
    const run = (...args: string[]) =>
      spawnSync(commandFile, args, { encoding: 'utf8', cwd: sandbox.work, env: {} });
    const { version } = JSON.parse(await readFile(path.join(projectRoot, 'package.json'), 'utf8')) as {
      version: string;
    };
    expect(run('--version')).toMatchObject({ status: 0, stdout: `opmate ${version}\n`, stderr: '' });
    expect(run('mirror', '--help').stdout).toContain('plan');
    expect(run('licenses').stdout).toMatch(/Apache License[^]*commander \d[^]*Node\.js is licensed/);
    const rendered = run('render', path.join(bundlesDirectory, 'microcks', '0.3.0'));
    expect(rendered).toMatchObject({ status: 0 });
  });

  it('takes at most 45 MB compressed, with a bill of materials and digests beside it', async () => {
    const { size } = await stat(`${commandFile}.zst`);
    expect(size).toBeLessThan(45_000_000);
    const directory = path.dirname(commandFile);
    const sums = spawnSync('sha256sum', ['--check', 'SHA256SUMS'], { cwd: directory, encoding: 'utf8' });
    expect(sums).toMatchObject({ status: 0 });
    expect(sums.stdout.split('\n')).toContain(`${path.basename(commandFile)}.cdx.json: OK`);
  });

  it('renders many directories with threads as the package does', async () => {
    const directories = await Promise.all(
      ['microcks', 'skupper-operator'].map(async (name) =>
        (await readdir(path.join(bundlesDirectory, name)))
          .filter((version) => /^\d/.test(version))
          .map((version) => path.join(bundlesDirectory, name, version)),
      ),
    );
    const args = ['render', ...Array.from({ length: 8 }, () => directories.flat()).flat()];
    const own = await sandbox.run(args);
    const installed = execFileSync(process.execPath, [path.join(projectRoot, 'bin', 'opmate.cjs'), ...args], {
      maxBuffer: 64 * 1024 * 1024,
    });
    expect(own).toMatchObject({ code: 0, stdout: installed.toString() });
  });

  it('unpacks its native module into a private directory, and into no other', async () => {
    const cache = path.join(sandbox.work, 'cache');
    const init = (env: Record<string, string>, to: string) =>
      spawnSync(commandFile, ['registry', 'create', to], { encoding: 'utf8', cwd: sandbox.work, env });
    const home = path.join(sandbox.work, 'home');
    await mkdir(home);
    expect(init({ HOME: home, XDG_CACHE_HOME: cache }, 'one.db')).toMatchObject({ status: 0 });
    const [name = ''] = await readdir(path.join(cache, 'opmate', 'native'));
    const content = await readFile(path.join(cache, 'opmate', 'native', name));
    expect(name).toBe(`${createHash('sha256').update(content).digest('hex')}.node`);
    expect((await stat(path.join(cache, 'opmate', 'native'))).mode & 0o077).toBe(0);

    // What others may write is not loaded from: the next directory is taken.
    await chmod(path.join(cache, 'opmate', 'native'), 0o777);
    expect(init({ HOME: home, XDG_CACHE_HOME: cache }, 'two.db')).toMatchObject({ status: 0 });
    expect(await readdir(path.join(home, '.cache', 'opmate', 'native'))).toEqual([name]);
  });

  it('works like opm through a link of that name', async () => {
    await symlink(commandFile, path.join(sandbox.work, 'opm'));
    const { status, stderr } = spawnSync('./opm', ['lint'], { encoding: 'utf8', cwd: sandbox.work });
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: 'error: unknown command "lint"\nhint: did you mean "opm validate"? see opm --help\n',
    });
  });

  it('holds the same bytes in each build', async () => {
    const { writeBlob } = await importBuilder<{
      writeBlob(platform: string, directory: string): Promise<Blob>;
    }>('blob.js');
    const build = async (name: string) => {
      const directory = path.join(sandbox.work, name);
      await mkdir(directory);
      return await readFile((await writeBlob('linux-x64', directory)).blob);
    };
    const first = await build('first');
    expect(first.equals(await build('second'))).toBe(true);
    const bytes = await readFile(commandFile);
    expect(bytes.includes(first)).toBe(true);
  });

  it.each([
    ['linux-arm64', { format: 'ELF', machine: 'arm64' }],
    ['darwin-arm64', { format: 'Mach-O', machine: 'arm64' }],
    ['win-x64', { format: 'PE', machine: 'x64' }],
  ])('is built for %s, with all files', async (platform, format) => {
    const { writeBlob } = await importBuilder<{
      writeBlob(platform: string, directory: string): Promise<Blob>;
    }>('blob.js');
    const { injectBlob, checkExecutable, readFormat } = await importBuilder<{
      injectBlob(platform: string, blob: string, file: string): Promise<void>;
      checkExecutable(file: string, platform: string, blob: Buffer): void;
      readFormat(bytes: Buffer): unknown;
    }>('inject.js');
    const directory = path.join(sandbox.work, platform);
    await mkdir(directory);
    const { blob, assets } = await writeBlob(platform, directory);
    const content = await readFile(blob);
    for (const [name, file] of Object.entries(assets)) {
      expect(content.includes(name), name).toBe(true);
      expect(content.includes(await readFile(file)), name).toBe(true);
    }
    expect(Object.keys(assets)).toEqual(
      expect.arrayContaining(['better_sqlite3.node', 'dist/view/page/index.html', 'licenses/node']),
    );
    const file = path.join(directory, 'opmate');
    await injectBlob(platform, blob, file);
    expect(readFormat(await readFile(file))).toEqual(format);
    expect(readFormat(await readFile(assets['better_sqlite3.node'] as string))).toEqual(format);
    expect(() => checkExecutable(file, 'linux-x64', content)).toThrow('opmate: expected ELF for x64, got');
    expect(() => checkExecutable(file, platform, Buffer.from('another program'))).toThrow(
      'opmate: does not contain the program',
    );
    await rm(directory, { recursive: true });
  });
});
