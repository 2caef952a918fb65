import { symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { lstatIfPresent, statIfPresent } from '../../../src/files/file-status.js';
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
      message: `stat ${loop}: too many levels of symbolic links`,
      file: loop,
    });
  });
});
