import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { outsideError, requireWithin } from '../../../src/files/directory-root.js';
import { directoryWith } from '../../support/temporary.js';

describe('files/directory-root', () => {
  it('refuses links out of the directory, in any part of the path', async () => {
    const parent = await directoryWith({ 'outside/secret': 's', 'root/in/file': 'f' });
    const root = path.join(parent, 'root');
    await symlink('../outside', path.join(root, 'folder'));
    await symlink('../../outside/secret', path.join(root, 'in/link'));
    await symlink('folder', path.join(root, 'again'));
    for (const name of ['folder', 'folder/secret', 'in/link', 'again/secret']) {
      await expect(requireWithin(root, path.join(root, name))).rejects.toMatchObject({ code: 'UNSAFE' });
      await expect(
        requireWithin(root, path.join(root, name), { followLinks: true }),
      ).resolves.toBeUndefined();
    }
    await expect(outsideError(root, path.join(parent, 'outside'))).resolves.toMatchObject({ code: 'UNSAFE' });
  });

  it('accepts files, links within the directory, what is missing, and a directory that is a link', async () => {
    const parent = await directoryWith({ 'root/in/file': 'f' });
    const root = path.join(parent, 'root');
    await symlink('in/file', path.join(root, 'link'));
    await symlink('nowhere', path.join(root, 'dangling'));
    await mkdir(path.join(parent, 'other'));
    await writeFile(path.join(parent, 'other/file'), '');
    await symlink('root', path.join(parent, 'named'));
    for (const name of ['', 'in', 'in/file', 'link', 'dangling', 'none/x', 'in/file/x']) {
      expect(await outsideError(root, path.join(root, name))).toBeUndefined();
      expect(
        await outsideError(path.join(parent, 'named'), path.join(parent, 'named', name)),
      ).toBeUndefined();
    }
    const relative = path.relative(process.cwd(), root);
    expect(await outsideError(relative, `${relative}/in/file`)).toBeUndefined();
  });
});
