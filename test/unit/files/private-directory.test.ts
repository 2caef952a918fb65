import { chmod, mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../../src/core/log.js';
import { findSharingProblem } from '../../../src/files/private-directory.js';
import { openSourceSession } from '../../../src/source/session.js';
import { directoryWith } from '../../support/temporary.js';

describe.skipIf(process.getuid === undefined)('files/private-directory', () => {
  it('accepts a directory of this user or of the superuser, and a missing one', async () => {
    const directory = await directoryWith();
    expect(await findSharingProblem(directory)).toBeUndefined();
    expect(await findSharingProblem('/')).toBeUndefined();
    expect(await findSharingProblem(path.join(directory, 'missing'))).toBeUndefined();
  });

  it.each([0o777, 0o1777, 0o775, 0o757])('refuses one that others may write to: mode %o', async (mode) => {
    const directory = await directoryWith();
    await chmod(directory, mode);
    expect(await findSharingProblem(directory)).toBe(
      `writable by other users (mode ${mode.toString(8).padStart(4, '0')})`,
    );
  });

  it('refuses one of another user', async () => {
    const directory = await directoryWith();
    await chmod(directory, 0o755);
    const mine = process.getuid?.() ?? 0;
    const fault = await findSharingProblem(directory, mine + 1);
    expect(fault).toBe(mine === 0 ? undefined : `owned by another user (${mine})`);
  });

  it('keeps a session from caching where others may write, and says so', async () => {
    const parent = await directoryWith();
    const directory = path.join(parent, 'cache');
    await mkdir(directory);
    await chmod(directory, 0o777);
    const warnings: string[] = [];
    const session = await openSourceSession({
      environment: { OPMATE_CACHE_DIR: directory },
      homeDirectory: parent,
      temporaryDirectory: parent,
      architecture: 'x64',
      logger: { ...silentLogger, log: (level, message) => void warnings.push(`${level}: ${message}`) },
    });
    await session.close();
    expect([session.cache, session.cacheDirectory]).toEqual([undefined, undefined]);
    expect(await readdir(directory)).toEqual([]);
    expect(warnings).toEqual([expect.stringMatching(/^warn: .*: cache not used: writable by other users/)]);
  });
});
