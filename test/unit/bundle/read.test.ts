import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readBundleFiles, isBundleDirectory, readBundleDirectory } from '../../../src/bundle/read.js';
import { CancelledError, LimitError } from '../../../src/core/errors.js';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'opmate-bundle-'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function write(files: Record<string, string>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(root, path, '..'), { recursive: true });
    await writeFile(join(root, path), content);
  }
}

function treeOf(files: Record<string, string>, directories: string[] = []) {
  return {
    files: new Map(
      Object.entries(files).map(([path, content]) => [
        path,
        { size: Buffer.byteLength(content), read: () => Promise.resolve(Buffer.from(content)) },
      ]),
    ),
    directories: new Set(directories),
  };
}

describe('bundle/read', () => {
  it('recognizes a bundle by two real directories', async () => {
    await write({ 'manifests/a': '', 'elsewhere/b': '' });
    expect(await isBundleDirectory(root)).toBe(false);
    await symlink(join(root, 'elsewhere'), join(root, 'metadata'));
    expect(await isBundleDirectory(root)).toBe(false);
    await rm(join(root, 'metadata'));
    await write({ 'metadata/a': '' });
    expect(await isBundleDirectory(root)).toBe(true);
    await expect(isBundleDirectory(join(root, 'none'))).rejects.toThrow(/none: no such file or directory$/);
  });

  it('reads files in byte order, without dot files of manifests and without directories', async () => {
    await write({
      'manifests/b': '2',
      'manifests/B': '1',
      'manifests/é': '3',
      'manifests/.x': '',
      'manifests/sub/c': '',
      'metadata/.y': 'y',
      'metadata/a': 'a',
    });
    const files = await readBundleDirectory(root);
    const shown = (list: { name: string; content: Buffer }[]) =>
      list.map(({ name, content }) => `${name}=${content}`);
    expect(shown(files.manifests)).toEqual(['B=1', 'b=2', 'é=3']);
    expect(shown(files.metadata)).toEqual(['.y=y', 'a=a']);
    expect(files.folders).toEqual(['sub']);
  });

  it('follows links to files, and skips other links and special files', async () => {
    await write({ 'manifests/a': 'A', 'metadata/m': '', 'other/o': 'O' });
    await symlink(join(root, 'other/o'), join(root, 'manifests/b'));
    await symlink(join(root, 'other'), join(root, 'manifests/c'));
    await symlink(join(root, 'nowhere'), join(root, 'manifests/d'));
    execFileSync('mkfifo', [join(root, 'manifests/e')]);
    const files = await readBundleDirectory(root);
    expect(files.manifests.map(({ content }) => content.toString())).toEqual(['A', 'O']);
  });

  it('names the missing directory', async () => {
    await write({ 'manifests/a': '' });
    await expect(readBundleDirectory(root)).rejects.toThrow(`${root}: directory metadata not found`);
    const dotted = `./${relative('.', root)}`;
    await expect(readBundleDirectory(dotted)).rejects.toThrow(`${dotted}: directory metadata not found`);
    const tree = treeOf({ 'manifests/a': '' });
    await expect(readBundleFiles(tree, { subject: 'img' })).rejects.toThrow(
      'img: directory metadata not found',
    );
    expect(
      (await readBundleFiles(treeOf({ 'manifests/a': '' }, ['metadata']), { subject: 'img' })).metadata,
    ).toEqual([]);
    const nested = treeOf({ 'manifests/a': '' }, [
      'manifests',
      'manifests/sub',
      'manifests/sub/x',
      'metadata',
    ]);
    expect((await readBundleFiles(nested, { subject: 'img' })).folders).toEqual(['sub']);
  });

  it('reads the files of an image', async () => {
    const tree = treeOf({
      'manifests/b.yaml': 'b',
      'manifests/a.yaml': 'a',
      'manifests/.z': '',
      'manifests/sub/x': '',
      'metadata/m.yaml': 'm',
      'tests/t': '',
    });
    const files = await readBundleFiles(tree, { subject: 'img' });
    expect(files.manifests.map(({ name }) => name)).toEqual(['a.yaml', 'b.yaml']);
    expect(files.metadata.map(({ content }) => content.toString())).toEqual(['m']);
  });

  it('enforces its limits', async () => {
    await write({ 'manifests/a': '12345', 'manifests/b': '', 'metadata/m': '' });
    await expect(readBundleDirectory(root, { limits: { maxFileSize: 4 } })).rejects.toThrow(LimitError);
    await expect(readBundleDirectory(root, { limits: { maxFiles: 1 } })).rejects.toThrow(
      /2 files in manifests\/, more/,
    );
    await expect(readBundleDirectory(root, { limits: { maxSize: 4 } })).rejects.toThrow(
      /more than the 4 bytes/,
    );
    const tree = treeOf({ 'manifests/a': '12345', 'metadata/m': '' });
    const ofBundle = { subject: 'img', limits: { maxSize: 4 } };
    await expect(readBundleFiles(tree, ofBundle)).rejects.toThrow(
      /^img: manifests\/a: more than the 4 bytes/,
    );
    await expect(readBundleFiles(tree, { subject: 'img', limits: { maxFileSize: 4 } })).rejects.toThrow(
      /^img: manifests\/a: 5 bytes, more than the 4/,
    );
  });

  it('stops when it is cancelled', async () => {
    await write({ 'manifests/a': '', 'metadata/m': '' });
    await expect(readBundleDirectory(root, { signal: AbortSignal.abort() })).rejects.toThrow(CancelledError);
  });
});
