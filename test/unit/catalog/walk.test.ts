import { symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { listCatalogFiles } from '../../../src/catalog/walk.js';
import { directoryWith } from '../../support/temporary.js';
import { readVectors } from '../../support/vectors.js';

async function walk(files: Record<string, string>): Promise<string[]> {
  const directory = await directoryWith(files);
  return (await listCatalogFiles(directory, 'c')).map((file) => file.label);
}

describe('catalog/walk', () => {
  it('takes every file, whatever its name, in byte order with directories in place', async () => {
    expect(await walk({ 'b.yaml': '', 'a/z.json': '', 'a.json': '', 'B/x': '', '.hidden': '' })).toEqual([
      'c/.hidden',
      'c/B/x',
      'c/a/z.json',
      'c/a.json',
      'c/b.yaml',
    ]);
  });

  it.each<[string, string[], string[]]>([
    ['a name anywhere', ['README.md'], ['c/README.md', 'c/x/README.md']],
    ['a glob', ['*.md'], ['c/README.md', 'c/x/README.md']],
    ['a path and all below it', ['x/y'], ['c/x/y/deep.yaml']],
    ['a rooted path', ['/README.md'], ['c/README.md']],
    ['a directory', ['x/'], ['c/x/README.md', 'c/x/y/deep.yaml']],
    ['a directory rule that does not hit files', ['README.md/'], []],
    ['any depth', ['**/deep.yaml'], ['c/x/y/deep.yaml']],
    ['a file brought back below an ignored directory', ['x', '!deep.yaml'], ['c/x/README.md']],
    ['comments and blank lines', ['', '# *.md', '   '], []],
    ['the last rule that hits', ['*.md', '!README.md', 'x/README.md'], ['c/x/README.md']],
  ])('leaves out %s', async (_what, rules, expected) => {
    const all = { 'README.md': '', 'a.yaml': '', 'x/README.md': '', 'x/y/deep.yaml': '' };
    const kept = await walk({ ...all, '.indexignore': rules.join('\n') });
    const left = Object.keys(all)
      .map((name) => `c/${name}`)
      .filter((name) => !kept.includes(name));
    expect(left.sort()).toEqual(expected.sort());
  });

  it('applies every recorded rule as opm does', async () => {
    const vectors = readVectors<{ rules: string; kept: string[] }>('indexignore.jsonl');
    expect(vectors).toHaveLength(150);
    const files = ['A.json', 'B.json', 'a/A.json', 'a/b/A.json', 'a/b/c/D.json'];
    const all = [...files, 'b/A.json', 'b/b/b.json', 'c.json/x.json'].map((name) => [name, ''] as const);
    const directory = await directoryWith(Object.fromEntries(all));
    for (const { rules, kept } of vectors) {
      await writeFile(path.join(directory, '.indexignore'), rules);
      const labels = (await listCatalogFiles(directory, 'c')).map(({ label }) => label.slice(2));
      expect({ rules, kept: labels.sort() }).toEqual({ rules, kept });
    }
  });

  it('applies rules only below the directory that holds them', async () => {
    const kept = await walk({ 'x/.indexignore': 'a.yaml', 'x/a.yaml': '', 'a.yaml': '', 'x/z/a.yaml': '' });
    expect(kept).toEqual(['c/a.yaml']);
  });

  it('does not hang on patterns made to be slow', async () => {
    const kept = await walk({ '.indexignore': `${'*a'.repeat(40)}b`, ['a'.repeat(200)]: '' });
    expect(kept).toHaveLength(1);
  });

  it('does not walk into linked directories', async () => {
    const directory = await directoryWith({ 'real/a.yaml': '' });
    await symlink('real', path.join(directory, 'link'));
    const labels = (await listCatalogFiles(directory, 'c')).map((file) => file.label);
    expect(labels).toEqual(['c/link', 'c/real/a.yaml']);
  });

  it('reports a missing directory', async () => {
    await expect(listCatalogFiles('/nonexistent/catalog')).rejects.toThrow(
      '/nonexistent/catalog: no such file or directory',
    );
  });
});
