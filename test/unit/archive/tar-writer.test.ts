import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { mkdtemp, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { type TarInput, gzipBytes, layerOf, writeLayer, writeTar } from '../../../src/archive/tar-writer.js';
import { directoryWith } from '../../support/temporary.js';

async function bytesOf(entries: TarInput[], mtime?: Date): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of writeTar(entries, mtime === undefined ? {} : { mtime }))
    chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

describe('archive/tar-writer', () => {
  const stored = mkdtempSync(join(tmpdir(), 'opmate-tar-stored-'));
  beforeAll(async () => {
    await writeFile(join(stored, 'c'), Buffer.alloc(700, 'c'));
    await writeFile(join(stored, 'large'), Buffer.alloc(700_002, 'large'));
    return () => rm(stored, { recursive: true, force: true });
  });
  const long = `${'long/'.repeat(60)}ü.json`;
  const entries: TarInput[] = [
    { path: 'configs/b.json', content: Buffer.from('{}') },
    { path: 'configs/a', type: 'directory' },
    { path: long, content: Buffer.from('long') },
    { path: 'configs/c', content: { file: join(stored, 'c'), size: 700 } },
    { path: 'configs/d/large', content: { file: join(stored, 'large'), offset: 1, size: 700_000 } },
    { path: 'bin', content: Buffer.from('#!'), mode: 0o755 },
  ];

  it('writes symbolic links', async () => {
    const work = await mkdtemp(join(tmpdir(), 'opmate-tar-'));
    try {
      await writeFile(
        join(work, 'x.tar'),
        await bytesOf([
          { path: 'bin/opmate', content: Buffer.from('program') },
          { path: 'bin/opm', type: 'symlink', target: 'opmate' },
        ]),
      );
      execFileSync('tar', ['-xf', join(work, 'x.tar'), '-C', work]);
      expect(await readlink(join(work, 'bin', 'opm'))).toBe('opmate');
      expect(await readFile(join(work, 'bin', 'opm'), 'utf8')).toBe('program');
    } finally {
      await rm(work, { recursive: true });
    }
  });

  it('writes what tar reads: sorted, with every directory, owned by 0, of 1970', async () => {
    const work = await mkdtemp(join(tmpdir(), 'opmate-tar-'));
    try {
      await writeFile(join(work, 'x.tar'), await bytesOf(entries.slice(0, 2).concat(entries.slice(3))));
      const listed = execFileSync('tar', ['--utc', '--numeric-owner', '-tvf', join(work, 'x.tar')], {
        encoding: 'utf8',
      });
      expect(
        listed
          .trim()
          .split('\n')
          .map((line) => line.replace(/ +/g, ' ')),
      ).toEqual([
        '-rwxr-xr-x 0/0 2 1970-01-01 00:00 bin',
        'drwxr-xr-x 0/0 0 1970-01-01 00:00 configs/',
        'drwxr-xr-x 0/0 0 1970-01-01 00:00 configs/a/',
        '-rw-r--r-- 0/0 2 1970-01-01 00:00 configs/b.json',
        '-rw-r--r-- 0/0 700 1970-01-01 00:00 configs/c',
        'drwxr-xr-x 0/0 0 1970-01-01 00:00 configs/d/',
        '-rw-r--r-- 0/0 700000 1970-01-01 00:00 configs/d/large',
      ]);
      await writeFile(join(work, 'y.tar'), await bytesOf(entries));
      execFileSync('tar', ['-xf', join(work, 'y.tar'), '-C', work]);
      expect(await readFile(join(work, long), 'utf8')).toBe('long');
      const large = await readFile(join(stored, 'large'));
      expect((await readFile(join(work, 'configs/d/large'))).equals(large.subarray(1, -1))).toBe(true);
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  });

  it('gives the same bytes whatever order entries come in', async () => {
    const bytes = await bytesOf(entries);
    expect((await bytesOf([...entries].reverse())).equals(bytes)).toBe(true);
    expect((await bytesOf(entries, new Date(1000))).equals(bytes)).toBe(false);
    const layer = await layerOf(entries);
    expect(layer.bytes.equals((await layerOf([...entries].reverse())).bytes)).toBe(true);
    expect(layer).toMatchObject({
      digest: sha256(layer.bytes),
      diffId: sha256(bytes),
      size: layer.bytes.length,
    });
    expect(gunzipSync(layer.bytes).equals(bytes)).toBe(true);
  });

  it('makes the same layer in a file as in memory', async () => {
    const file = join(await directoryWith(), 'layer');
    const { bytes, ...facts } = await layerOf(entries);
    expect(await writeLayer(file, entries)).toEqual({ file, ...facts });
    expect((await readFile(file)).equals(bytes)).toBe(true);
    await expect(writeLayer(file, entries)).rejects.toMatchObject({ code: 'IO' });
    const signal = AbortSignal.abort();
    await expect(writeLayer(`${file}2`, entries, { signal })).rejects.toMatchObject({ code: 'CANCELLED' });
  });

  it('writes a gzip header without name, time or system', async () => {
    const bytes = await gzipBytes(Buffer.from('hello'));
    expect(bytes.subarray(0, 10).toString('hex')).toBe('1f8b08000000000000ff');
    expect(String(gunzipSync(bytes))).toBe('hello');
    expect(gunzipSync(await gzipBytes(Buffer.alloc(0)))).toHaveLength(0);
  });

  it('writes an empty archive', async () => {
    expect(await bytesOf([])).toEqual(Buffer.alloc(1024));
  });

  it.each(['', '/a', 'a//b', 'a/', '../a', 'a/./b', 'a\0b'])('refuses the path %j', async (path) => {
    await expect(bytesOf([{ path, content: Buffer.alloc(0) }])).rejects.toMatchObject({ code: 'INVALID' });
  });
  it('refuses a path twice, and one under a file', async () => {
    await expect(bytesOf([{ path: 'a' }, { path: 'a' }])).rejects.toThrow('a: duplicate path in an archive');
    await expect(bytesOf([{ path: 'a' }, { path: 'a/b' }])).rejects.toThrow('a: both a file and a directory');
  });
  it.each([
    [5, 'longer'],
    [9, 'shorter'],
  ])('refuses a file that said %i bytes and is %s', async (size, word) => {
    const content = { size, file: join(await directoryWith({ a: '7 bytes' }), 'a') };
    await expect(bytesOf([{ path: 'a', content }])).rejects.toMatchObject({
      code: 'INVALID',
      message: expect.stringContaining(word),
    });
    await expect(layerOf([{ path: 'a', content }])).rejects.toMatchObject({ code: 'INVALID' });
  });
});
