import { spawnSync } from 'node:child_process';
import { readFile, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { indexTar } from '../../../src/archive/tar-index.js';
import { paddedSize, tarEnd, tarFileHeader, tarHeaderSize } from '../../../src/archive/tar-header.js';
import { directoryWith } from '../../support/temporary.js';

describe('archive/tar-header', () => {
  it.each([
    ['an ordinary file', 'blobs/sha256/abc', 5],
    ['an empty file', 'empty', 0],
    ['a name of 100 characters', 'n'.repeat(100), 512],
    ['a name of 101 characters', 'n'.repeat(101), 513],
    ['a name of 256 characters', `${'d'.repeat(200)}/${'n'.repeat(55)}`, 1],
    ['a size of 8 GiB - 1', 'large', 2 ** 33 - 1],
    ['a size of 8 GiB', 'large', 2 ** 33],
    ['a long name and a size that digits cannot say', 'n'.repeat(120), 9 * 2 ** 30 + 5],
  ])('heads %s as tar and opmate read it', async (_what, name, size) => {
    const file = path.join(await directoryWith(), 'one.tar');
    const header = tarFileHeader(name, size);
    expect(header).toHaveLength(tarHeaderSize(name, size));
    await writeFile(file, header);
    await truncate(file, header.length + paddedSize(size) + tarEnd.length);
    const options = { encoding: 'utf8', env: { ...process.env, TZ: 'UTC' } } as const;
    const { stdout, stderr } = spawnSync('tar', ['-tvf', file], options);
    expect(stderr).toBe('');
    expect(stdout.replace(/ +/g, ' ')).toBe(`-rw-r--r-- 0/0 ${size} 1970-01-01 00:00 ${name}\n`);
    expect(await indexTar(file)).toEqual(new Map([[name, { offset: header.length, size }]]));
  });

  it('is what makes a file an archive, with the end', async () => {
    const directory = await directoryWith();
    const file = path.join(directory, 'one.tar');
    const content = Buffer.from('content'.padEnd(paddedSize(7), '\0'));
    await writeFile(file, Buffer.concat([tarFileHeader('a/b', 7), content, tarEnd]));
    expect(spawnSync('tar', ['-xf', file], { cwd: directory }).status).toBe(0);
    expect(await readFile(path.join(directory, 'a/b'), 'utf8')).toBe('content');
  });
});
