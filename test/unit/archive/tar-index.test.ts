import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { indexTar } from '../../../src/archive/tar-index.js';
import { OpmateError } from '../../../src/core/errors.js';
import { type RawEntry, rawTar } from '../../support/tar.js';

let root: string;
let file: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'opmate-tar-'));
  file = join(root, 'a.tar');
});
afterEach(() => rm(root, { recursive: true, force: true }));

async function contentsOf(): Promise<Record<string, string>> {
  const bytes = await readFile(file);
  const slices = await indexTar(file);
  return Object.fromEntries(
    [...slices].map(([name, { offset, size }]) => [name, bytes.toString('utf8', offset, offset + size)]),
  );
}

const writeTar = (entries: RawEntry[]) => writeFile(file, rawTar(entries));

describe('archive/tar-index', () => {
  it.each(['gnu', 'pax', 'ustar', 'v7'])('reads what GNU tar writes as %s', async (format) => {
    const long =
      format === 'gnu' || format === 'pax'
        ? `${'d'.repeat(90)}/${'e'.repeat(90)}/${'f'.repeat(90)}.txt`
        : 'd/e.txt';
    await mkdir(join(root, 't', long, '..'), { recursive: true });
    await writeFile(join(root, 't', long), 'long name');
    await writeFile(join(root, 't', 'empty'), '');
    await writeFile(join(root, 't', 'big'), 'x'.repeat(5000));
    execFileSync('tar', ['-C', join(root, 't'), `--format=${format}`, '-cf', file, '.']);
    expect(await contentsOf()).toEqual({ [long]: 'long name', empty: '', big: 'x'.repeat(5000) });
  });

  it('lets the last of two entries count, and follows links to files', async () => {
    await writeTar([
      { name: 'a', content: 'first' },
      { name: 'a', content: 'second' },
      { name: 'd/hard', flag: '1', linkName: 'a' },
      { name: 'd/soft', flag: '2', linkName: '../a' },
      { name: 'd/chain', flag: '2', linkName: 'soft' },
      { name: 'dangling', flag: '2', linkName: 'nowhere' },
      { name: 'loop', flag: '2', linkName: 'loop' },
      { name: 'dir', flag: '5' },
    ]);
    expect(await contentsOf()).toEqual({
      a: 'second',
      'd/hard': 'second',
      'd/soft': 'second',
      'd/chain': 'second',
    });
  });

  it('refuses names and links that lead out', async () => {
    await writeTar([{ name: '../x' }]);
    await expect(indexTar(file)).rejects.toMatchObject({ code: 'UNSAFE' });
    await writeTar([{ name: 'l', flag: '2', linkName: '../../etc/passwd' }]);
    await expect(indexTar(file)).rejects.toMatchObject({ code: 'UNSAFE' });
  });

  it('refuses too many entries, a cut archive, a damaged header and what is no tar', async () => {
    await writeTar([
      { name: 'a', content: '1' },
      { name: 'b', content: '2' },
      { name: 'c', content: '3'.repeat(600) },
    ]);
    await expect(indexTar(file, { maxEntries: 2 })).rejects.toMatchObject({ code: 'LIMIT' });
    const whole = await readFile(file);
    await truncate(file, 2048 + 512 + 100);
    await expect(indexTar(file)).rejects.toMatchObject({ code: 'SYNTAX' });
    whole[1024] = 0x7a;
    await writeFile(file, whole);
    await expect(indexTar(file)).rejects.toMatchObject({
      code: 'SYNTAX',
      message: `${file}: damaged tar archive at byte 1024`,
    });
    await writeFile(file, 'x'.repeat(3000));
    await expect(indexTar(file)).rejects.toMatchObject({ message: `${file}: not a tar archive` });
    await expect(indexTar(join(root, 'none'))).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('fails with nothing but its own errors, whatever the bytes are', async () => {
    await writeTar([
      { name: 'a', content: '1'.repeat(700) },
      { name: 'n', content: '2', pax: { path: 'n'.repeat(300) } },
      { name: 'l', flag: '2', linkName: 'a' },
    ]);
    const whole = await readFile(file);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 6 }),
        async (changes) => {
          const bytes = Buffer.from(whole);
          for (const [at, value] of changes) bytes[at] = value;
          await writeFile(file, bytes);
          try {
            for (const { offset, size } of (await indexTar(file)).values()) {
              if (offset < 512 || size < 0 || offset + size > bytes.length)
                throw new Error('slice outside of the file');
            }
          } catch (error) {
            if (!(error instanceof OpmateError)) throw error;
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});
