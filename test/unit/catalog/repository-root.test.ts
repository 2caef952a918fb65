import { describe, expect, it } from 'vitest';
import { DirectoryCatalog } from '../../../src/catalog/catalog.js';
import { directoryWith } from '../../support/temporary.js';

const packageText = '{"schema": "olm.package", "name": "p", "defaultChannel": "c"}';
const git = { '.git/HEAD': 'ref: refs/heads/main\n', '.git/config': '[core]\n\tbare = false\n' };

async function readAll(files: Record<string, string>): Promise<number> {
  const catalog = new DirectoryCatalog(await directoryWith(files), 'here');
  let blobs = 0;
  for await (const meta of catalog.metas()) if (meta.schema !== '') blobs++;
  await catalog.close();
  return blobs;
}

describe('catalog/repository-root', () => {
  it.each<[string, Record<string, string>, string]>([
    [
      'the directory of all packages',
      {
        'README.md': 'x',
        'catalogs/a/catalog.yaml': 'schema: olm.package\nname: a\n',
        'catalogs/b/b.json': packageText,
      },
      'specify the directory of the catalog: "catalogs"',
    ],
    [
      'several directories',
      {
        'v4.14/catalog.json': packageText,
        'v4.15/catalog.json': packageText,
        'ci.yaml': 'schema: olm.packages',
      },
      'specify the directory of the catalog: "v4.14", "v4.15"',
    ],
    [
      'no directory',
      { 'README.md': packageText },
      'specify the directory of a catalog: no file has an olm.package blob',
    ],
    [
      'the root',
      { 'catalog.json': packageText },
      'add .git/ to .indexignore, or move the catalog to a directory',
    ],
  ])('names %s instead of problems in the files of Git', async (_what, files, hint) => {
    await expect(readAll({ ...git, ...files })).rejects.toMatchObject({
      ...{ code: 'INVALID', message: 'here: root of a Git repository, not a catalog', hint },
    });
  });

  it('refuses a worktree, and reads a repository whose files of Git are ignored', async () => {
    await expect(readAll({ '.git': 'gitdir: /x', 'a/a.json': packageText })).rejects.toMatchObject({
      hint: 'specify the directory of the catalog: "a"',
    });
    expect(await readAll({ ...git, '.indexignore': '.git\n', 'catalog.json': packageText })).toBe(1);
    expect(await readAll({ 'a/.git/HEAD': '{"schema": "x"}', 'catalog.json': packageText })).toBe(2);
  });
});
