import { spawnSync } from 'node:child_process';
import { chmod, mkdir, readFile, rm, stat, symlink } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../support/command-line.js';
import { directoryWith } from '../support/temporary.js';

/** Starts opmate from modules, with a Node.js that records which directory of compiled code is enabled. */
async function enabledCache(home: string, more: Record<string, string> = {}): Promise<string | undefined> {
  const directory = await directoryWith({
    'record.cjs':
      "require('node:module').enableCompileCache = (place) => require('node:fs').writeFileSync(process.env.RECORD, String(place));",
  });
  const record = path.join(directory, 'record');
  const args = ['-r', path.join(directory, 'record.cjs'), 'bin/opmate.cjs', 'version', '--debug'];
  const env = { PATH: process.env['PATH'], HOME: home, RECORD: record, ...more };
  const { status } = spawnSync(process.execPath, args, { cwd: projectRoot, env });
  expect(status).toBe(0);
  return readFile(record, 'utf8').catch(() => undefined);
}

describe('the cache of compiled code', () => {
  it('is a directory of the user alone', async () => {
    const home = await directoryWith();
    const directory = path.join(home, '.cache/opmate/compiled');
    expect(await enabledCache(home)).toBe(directory);
    expect((await stat(directory)).mode & 0o777).toBe(0o700);
    const other = await directoryWith();
    expect(await enabledCache(home, { XDG_CACHE_HOME: other })).toBe(path.join(other, 'opmate/compiled'));
  });

  it.each(['.cache/opmate', '.cache/opmate/compiled'])(
    'is not used if others can write to %s',
    async (name) => {
      const home = await directoryWith();
      await mkdir(path.join(home, '.cache/opmate/compiled'), { recursive: true });
      await chmod(path.join(home, name), 0o777);
      expect(await enabledCache(home)).toBeUndefined();
    },
  );

  it('is not used behind a link, and not in a shared directory without a home', async () => {
    const home = await directoryWith();
    const other = await directoryWith();
    await mkdir(path.join(home, '.cache/opmate'), { recursive: true });
    await symlink(other, path.join(home, '.cache/opmate/compiled'));
    expect(await enabledCache(home)).toBeUndefined();
    await rm(path.join(home, '.cache'), { recursive: true });
    expect(await enabledCache('', { HOME: '' })).toBeUndefined();
    expect(await enabledCache('', { HOME: '', XDG_CACHE_HOME: 'relative' })).toBeUndefined();
  });
});
