import { chmod, rename, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  getFileIdentity,
  getFileState,
  lstatIfPresent,
  statIfPresent,
} from '../../../src/files/file-status.js';
import { directoryWith } from '../../support/temporary.js';

describe('files/file-status', () => {
  it('returns nothing for a path that names nothing, also below a file or too long', async () => {
    const directory = await directoryWith({ file: 'x' });
    await symlink('nowhere', path.join(directory, 'link'));
    for (const name of ['none', 'file/below', 'n'.repeat(1000), 'link']) {
      expect(await statIfPresent(path.join(directory, name))).toBeUndefined();
    }
    expect((await lstatIfPresent(path.join(directory, 'link')))?.isSymbolicLink()).toBe(true);
    await writeFile(path.join(directory, 'nowhere'), '');
    expect((await statIfPresent(path.join(directory, 'link')))?.isFile()).toBe(true);
  });

  it('reports every other failure, such as a link that leads to itself', async () => {
    const loop = path.join(await directoryWith(), 'loop');
    await symlink('loop', loop);
    await expect(statIfPresent(loop)).rejects.toMatchObject({
      code: 'IO',
      message: `${loop}: too many levels of symbolic links`,
      file: loop,
    });
  });

  it('distinguishes a replaced file, or one written to with its date set back, from the same file moved', async () => {
    const directory = await directoryWith({ a: 'x', b: 'x' });
    const [a, b] = [path.join(directory, 'a'), path.join(directory, 'b')];
    const date = new Date('2024-01-31T00:00:00Z');
    for (const file of [a, b]) await utimes(file, date, date);
    const before = await stat(a, { bigint: true });
    expect(getFileIdentity(await stat(b, { bigint: true }))).not.toBe(getFileIdentity(before));

    await chmod(a, 0o600);
    await rename(a, path.join(directory, 'moved'));
    const moved = await stat(path.join(directory, 'moved'), { bigint: true });
    expect(getFileIdentity(moved)).toBe(getFileIdentity(before));

    await writeFile(path.join(directory, 'moved'), 'y');
    await utimes(path.join(directory, 'moved'), date, date);
    const written = await stat(path.join(directory, 'moved'), { bigint: true });
    expect(getFileState(written)).not.toBe(getFileState(before));
  });
});
