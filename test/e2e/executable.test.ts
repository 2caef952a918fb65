import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, readFile, readdir, stat, symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { bundlesDirectory, commandFile, projectRoot, useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();
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
});
