import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmod,
  chown,
  copyFile,
  lchown,
  mkdir,
  mkdtemp,
  readdir,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { projectRoot } from '../support/command-line.js';
import { directoryWith } from '../support/temporary.js';

/** A user that cannot write to files of the one who runs the tests, where that is root. */
const other = process.getuid?.() === 0 ? 65_534 : undefined;

let installed: string;
beforeAll(async () => {
  installed = await mkdtemp(path.join(tmpdir(), 'opmate-installed-'));
  await mkdir(path.join(installed, 'catalog'));
  await writeFile(path.join(installed, 'catalog/catalog.json'), '{"schema":"olm.package","name":"a"}');
  for (const name of ['bin', 'lib', 'package.json'])
    execFileSync('cp', ['-R', path.join(projectRoot, name), installed]);
  execFileSync('find', [path.join(installed, 'lib'), '-name', '*.cache', '-delete']);
  execFileSync('chmod', ['-R', 'a+rX,a-w', path.join(installed, 'lib')]);
  // The other user may not enter the directory of Node.js.
  await copyFile(process.execPath, path.join(installed, 'node'));
  await chmod(installed, 0o755);
});
afterAll(() => rm(installed, { recursive: true, force: true }));

/** Returns a directory of the user who runs the commands. */
async function homeOf(directory: string): Promise<string> {
  await chmod(directory, 0o755);
  for (const name of ['', ...(await readdir(directory, { recursive: true }))])
    if (other !== undefined) await lchown(path.join(directory, name), other, other);
  return directory;
}

/** Runs a command of a package whose directory cannot be written. */
function run(home: string, more: Record<string, string> = {}): void {
  const args = [path.join(installed, 'bin/opmate.cjs'), 'render', path.join(installed, 'catalog')];
  const env = { PATH: process.env['PATH'], HOME: home, ...more };
  const user = other === undefined ? {} : { uid: other, gid: other };
  const result = spawnSync(path.join(installed, 'node'), args, {
    cwd: installed,
    encoding: 'utf8',
    env,
    ...user,
  });
  expect(result).toMatchObject({ status: 0, stderr: '' });
}

const cachesIn = async (directory: string): Promise<string[]> =>
  (await readdir(directory)).filter((name) => name.endsWith('-render.cache'));

describe('the cache of compiled code', () => {
  it('is in a directory of the user alone where the package cannot be written', async () => {
    const home = await homeOf(await directoryWith());
    run(home);
    const directory = path.join(home, '.cache/opmate/compiled');
    const [name = ''] = await cachesIn(directory);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    const { mtimeMs } = await stat(path.join(directory, name));

    run(home);
    expect(await cachesIn(directory)).toEqual([name]);
    expect((await stat(path.join(directory, name))).mtimeMs).toBe(mtimeMs);

    const cache = await homeOf(await directoryWith());
    run(home, { XDG_CACHE_HOME: cache });
    expect(await cachesIn(path.join(cache, 'opmate/compiled'))).toEqual([name]);
    expect(await cachesIn(path.join(installed, 'lib'))).toEqual([]);
  });

  it.each(['.cache/opmate', '.cache/opmate/compiled'])(
    'is not used if others can write to %s',
    async (name) => {
      const home = await directoryWith();
      await mkdir(path.join(home, '.cache/opmate/compiled'), { recursive: true });
      await chmod(path.join(home, name), 0o777);
      run(await homeOf(home));
      expect(await cachesIn(path.join(home, '.cache/opmate/compiled'))).toEqual([]);
    },
  );

  it.skipIf(other === undefined)('is not used in a directory of another user', async () => {
    const home = await directoryWith();
    await mkdir(path.join(home, '.cache/opmate/compiled'), { recursive: true });
    await homeOf(home);
    await chown(path.join(home, '.cache/opmate'), 0, 0);
    run(home);
    expect(await cachesIn(path.join(home, '.cache/opmate/compiled'))).toEqual([]);
  });

  it('is not used behind a link, and not in a shared directory without a home', async () => {
    const home = await directoryWith();
    const elsewhere = await homeOf(await directoryWith());
    await mkdir(path.join(home, '.cache/opmate'), { recursive: true });
    await symlink(elsewhere, path.join(home, '.cache/opmate/compiled'));
    run(await homeOf(home));
    expect(await readdir(elsewhere)).toEqual([]);
    await rm(path.join(home, '.cache'), { recursive: true });
    run('', { HOME: '', XDG_CACHE_HOME: 'relative' });
    expect(await readdir(home)).toEqual([]);
  });
});
