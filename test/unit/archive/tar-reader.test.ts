import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultArchiveLimits } from '../../../src/archive/limits.js';
import { readTar } from '../../../src/archive/tar-reader.js';
import { type RawEntry, paxRecord, rawTar, streamOf } from '../../support/tar.js';

async function list(bytes: Buffer, limits = defaultArchiveLimits): Promise<string[]> {
  const result: string[] = [];
  for await (const entry of readTar(streamOf(bytes), { label: 'layer x', limits })) {
    let content = '';
    for await (const chunk of entry.body) content += String(chunk);
    result.push(`${entry.path} ${entry.type} ${content || entry.linkName}`.trim());
  }
  return result;
}

const a: RawEntry = { name: 'a', content: 'A' };

describe('archive/tar-reader', () => {
  it('yields entries with what they are, and skips what is not read', async () => {
    const bytes = rawTar([
      { name: './', flag: '5' },
      { name: 'd/', flag: '5', size: 5 },
      { name: 'd/f', content: 'x'.repeat(2000) },
      { name: 'old/', flag: '\0' },
      { name: 'l', flag: '2', linkName: 'd/f' },
      { name: 'h', flag: '1', linkName: 'd/f' },
      { name: 'p', flag: '6' },
      a,
    ]);
    expect(await list(gzipSync(bytes))).toEqual([
      'd directory',
      `d/f file ${'x'.repeat(2000)}`,
      'old directory',
      'l symlink d/f',
      'h link d/f',
      'p other',
      'a file A',
    ]);
    const paths: string[] = [];
    for await (const entry of readTar(streamOf(bytes, 100), { label: 'x' })) {
      paths.push(entry.path);
      // Part of a body only.
      if (entry.path === 'd/f') await entry.body[Symbol.asyncIterator]().next();
    }
    expect(paths).toEqual(['d', 'd/f', 'old', 'l', 'h', 'p', 'a']);
  });

  it('reads long names of PAX and GNU archives, and ignores PAX global headers of comments and times', async () => {
    const long = 'n/'.repeat(150) + 'x';
    expect(await list(rawTar([{ ...a, pax: { path: long } }]))).toEqual([`${long} file A`]);
    expect(await list(rawTar([{ name: '././@LongLink', flag: 'L', content: `${long}\0` }, a]))).toEqual([
      `${long} file A`,
    ]);
    const global = { name: 'g', flag: 'g', content: paxRecord('comment', 'x') + paxRecord('mtime', '0') };
    expect(await list(rawTar([global, { ...a, pax: { comment: 'x' } }, a]))).toEqual([
      'a file A',
      'a file A',
    ]);
  });

  it.each<[string, Buffer, RegExp]>([
    ['text', Buffer.from('<html>'.repeat(500)), /^layer x: not a tar archive$/],
    ['less than a header', Buffer.from('{}'), /^layer x: damaged tar archive: unexpected end$/],
    ['gzip in gzip', gzipSync(gzipSync('x'.repeat(600_000), { level: 0 })), /^layer x: not a tar archive$/],
    [
      'a truncated body',
      rawTar([a, { ...a, content: 'x'.repeat(5000) }]).subarray(0, 3000),
      /unexpected end after entry "a"$/,
    ],
    ['a truncated header', rawTar([a, a]).subarray(0, 1200), /unexpected end after entry "a"$/],
    [
      'a broken second header',
      Buffer.concat([rawTar([a], { end: false }), Buffer.alloc(512, 1)]),
      /bad header after entry "a"$/,
    ],
    [
      'a negative size',
      rawTar([{ ...a, sizeField: Buffer.alloc(12, 0xff) }]),
      /not a tar archive|bad header/,
    ],
    [
      'a size of 2^80',
      rawTar([{ ...a, sizeField: Buffer.from('800000000100000000000000', 'hex') }]),
      /unexpected end/,
    ],
    ['a PAX size below zero', rawTar([{ ...a, pax: { size: '-1' } }]), /not a tar archive|bad header/],
    [
      'a PAX header of 5 MiB',
      rawTar([{ name: 'x', flag: 'x', content: 'y'.repeat(5 << 20) }]),
      /damaged tar archive: oversized header$/,
    ],
  ])('refuses %s', async (_, bytes, message) => {
    await expect(list(bytes)).rejects.toMatchObject({
      code: 'SYNTAX',
      message: expect.stringMatching(message),
    });
  });

  it('refuses names and link targets of 64 KiB', async () => {
    const long = 'n/'.repeat(32 * 1024);
    await expect(list(rawTar([{ ...a, pax: { path: long } }]))).rejects.toMatchObject({ code: 'LIMIT' });
    await expect(list(rawTar([{ name: 'l', flag: '2', pax: { linkpath: long } }]))).rejects.toMatchObject({
      code: 'LIMIT',
    });
  });

  it('stops at a million entries', async () => {
    const bytes = gzipSync(
      rawTar(
        Array.from({ length: 1000 }, () => ({ name: 'a' })),
        { end: false },
      ),
    );
    await expect(
      list(Buffer.concat(Array.from({ length: 3 }, () => bytes)), {
        ...defaultArchiveLimits,
        maxEntries: 2500,
      }),
    ).rejects.toMatchObject({ code: 'LIMIT', hint: expect.stringContaining('limits.maxEntries') });
  });

  it('ends with entries or an error of its own for any bytes', async () => {
    const valid = rawTar([
      a,
      { name: 'l', flag: '2', linkName: 'a', pax: { path: 'b/c', size: '3' } },
      { ...a, pax: { path: 'ü' } },
    ]);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(valid.length - 1), fc.nat(255)), { maxLength: 4 }),
        fc.nat(valid.length),
        async (changes, length) => {
          const bytes = Buffer.from(valid.subarray(0, length));
          for (const [at, value] of changes) if (at < length) bytes[at] = value;
          for (let at = 0; at + 512 <= length; at += 512) {
            // Half of the archives get right checksums, so that what lies behind them is reached.
            if (changes.length % 2 === 0 || bytes.toString('latin1', at + 257, at + 262) !== 'ustar')
              continue;
            bytes.fill(' ', at + 148, at + 156);
            const sum = bytes.subarray(at, at + 512).reduce((total, byte) => total + byte, 0);
            bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, at + 148);
          }
          await list(bytes).catch((error: unknown) => {
            expect(error).toMatchObject({ code: /^(SYNTAX|UNSAFE|LIMIT|UNSUPPORTED)$/ as unknown as string });
          });
        },
      ),
      { numRuns: 300 },
    );
  });
});
