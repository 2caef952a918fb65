import { execFileSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { formatMessage } from '../../../src/core/diagnostic.js';
import { defaultArchiveLimits } from '../../../src/archive/limits.js';
import { listFiles } from '../../../src/bundle/image-files.js';
import { isWithin } from '../../../src/core/text/paths.js';
import { LimitError } from '../../../src/core/errors.js';
import { directoryWith } from '../../support/temporary.js';

const limits = defaultArchiveLimits;

describe('bundle/image-files', () => {
  it('lists all files in byte order, including those that readers ignore', async () => {
    const directory = await directoryWith({ 'b/x.yaml': 'x', 'b.yaml': '', '.indexignore': 'README.md' });
    await writeFile(path.join(directory, 'README.md'), 'read me');
    await mkdir(path.join(directory, 'empty'));
    const { files, findings } = await listFiles(directory, { label: directory, limits });
    expect(findings).toEqual([]);
    expect(files.map(({ path: name, size }) => [name, size])).toEqual([
      ['.indexignore', 9],
      ['README.md', 7],
      ['b.yaml', 0],
      ['b/x.yaml', 1],
    ]);
  });

  it('follows links within the directory, as in a mounted ConfigMap', async () => {
    const directory = await directoryWith({ 'real/..2026/catalog.yaml': 'abc' });
    await symlink('..2026/catalog.yaml', path.join(directory, 'real', 'catalog.yaml'));
    await symlink('real', path.join(directory, 'link'));
    const { files } = await listFiles(path.join(directory, 'link'), {
      label: path.join(directory, 'link'),
      limits,
    });
    expect(files.map(({ path: name, size }) => [name, size])).toEqual([
      ['..2026/catalog.yaml', 3],
      ['catalog.yaml', 3],
    ]);
  });

  it('reports all files that cannot or must not be in an image', async () => {
    const directory = await directoryWith({ 'ok.yaml': '', '.wh.a': '', 'a\\b': '', 'line\nbreak': '' });
    await symlink('/etc/hostname', path.join(directory, 'outside'));
    await symlink('nowhere', path.join(directory, 'dangling'));
    await symlink('.', path.join(directory, 'loop'));
    execFileSync('mkfifo', [path.join(directory, 'pipe')]);
    const { findings } = await listFiles(directory, { label: directory, limits });
    expect(
      findings.map(({ file, ...finding }) => [path.basename(file ?? ''), formatMessage(finding)]),
    ).toEqual([
      ['.wh.a', 'invalid file name ".wh.a" for an image'],
      ['a\\b', 'invalid file name "a\\\\b" for an image'],
      ['dangling', 'a link: no such file or directory'],
      ['line\nbreak', 'invalid file name "line\\nbreak" for an image'],
      ['loop', 'a link to a directory'],
      ['outside', expect.stringMatching(/^a link to ".*", outside of the directory$/)],
      ['pipe', 'is not a regular file'],
    ]);
  });

  it('stops at the limits', async () => {
    const directory = await directoryWith({ 'a.yaml': '12345', 'b.yaml': '12345' });
    const list = (less: object) => listFiles(directory, { label: directory, limits: { ...limits, ...less } });
    await expect(list({ maxEntries: 1 })).rejects.toThrow(LimitError);
    await expect(list({ maxUnpackedSize: 9 })).rejects.toThrow(LimitError);
    await expect(list({ maxUnpackedSize: 10 })).resolves.toMatchObject({ findings: [] });
    await expect(
      listFiles(path.join(directory, 'none'), { label: path.join(directory, 'none'), limits }),
    ).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    const deep = await directoryWith({ [`${'d/'.repeat(101)}x`]: '' });
    await expect(listFiles(deep, { label: deep, limits })).rejects.toThrow(/more than 100 levels/);
  });

  it.each([
    ['/a', '/a', true],
    ['/a', '/a/b', true],
    ['/a', '/a/..b', true],
    ['/a', '/ab', false],
    ['/a', '/', false],
  ])('tells whether %s holds %s', (directory, file, expected) => {
    expect(isWithin(directory, file)).toBe(expected);
  });
});
