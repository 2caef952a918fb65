import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { decompress } from '../../../src/archive/decompress.js';
import { type ArchiveLimits, defaultArchiveLimits } from '../../../src/archive/limits.js';
import { streamOf } from '../../support/tar.js';

async function drain(source: Readable, signal?: AbortSignal): Promise<void> {
  const chunks = decompress(source, { label: 'x', signal });
  while ((await chunks.next()).done !== true);
}

async function unpack(bytes: Buffer, options: { chunkSize?: number; limits?: Partial<ArchiveLimits> } = {}) {
  const source = streamOf(bytes, options.chunkSize);
  const chunks: Buffer[] = [];
  const limits = { ...defaultArchiveLimits, ...options.limits };
  for await (const chunk of decompress(source, { label: 'layer x', limits })) chunks.push(chunk);
  expect(source.destroyed).toBe(true);
  return Buffer.concat(chunks);
}

// Made with `zstd` 1.5.4, which Node.js 20 cannot do; see each for its input.
const zstd = {
  /** `printf 'hello, layer\n' | zstd` */
  hello: Buffer.from('KLUv/QRYaQAAaGVsbG8sIGxheWVyCoK1qXA=', 'base64'),
  /** `yes 'operator catalog' | head -c 300000 | zstd -19` */
  yes: Buffer.from(
    'KLUv/QRozAAAiG9wZXJhdG9yIGNhdGFsb2cKAQDZ/ymfS0QAAAABAP3/lE8gRQAAAAEA3RMdAAGV2BY5',
    'base64',
  ),
  /** By hand: a frame of 640 blocks that each repeat one byte 131,072 times. */
  bomb: Buffer.concat([
    Buffer.from('28b52ffd0068', 'hex'),
    Buffer.from('02001000'.repeat(640), 'hex'),
    Buffer.from('010000', 'hex'),
  ]),
  /** `printf x | zstd --ultra -22 --long=27 --no-check` */
  longWindow: Buffer.from('28b52ffd008809000078', 'hex'),
};
const yes = Buffer.from('operator catalog\n'.repeat(20_000).slice(0, 300_000));

describe('archive/decompress', () => {
  it.each([1, 7, 64 * 1024])(
    'tells gzip, zstd and neither by their first bytes, in chunks of %i',
    async (chunkSize) => {
      expect(String(await unpack(gzipSync('hello'), { chunkSize }))).toBe('hello');
      expect(String(await unpack(zstd.hello, { chunkSize }))).toBe('hello, layer\n');
      expect(String(await unpack(Buffer.from('plain bytes'), { chunkSize }))).toBe('plain bytes');
      expect(String(await unpack(Buffer.from('BZ'), { chunkSize }))).toBe('BZ');
      expect(await unpack(Buffer.alloc(0), { chunkSize })).toHaveLength(0);
      expect((await unpack(zstd.yes, { chunkSize })).equals(yes)).toBe(true);
    },
  );

  it('reads every member of a gzip file and every frame of a zstd file, skippable ones aside', async () => {
    const members = Buffer.concat([gzipSync('a'.repeat(100_000)), gzipSync(''), gzipSync('b')]);
    for (const chunkSize of [1000, 13, members.length]) {
      expect(String(await unpack(members, { chunkSize }))).toBe(`${'a'.repeat(100_000)}b`);
    }
    const skippable = Buffer.from('502a4d1805000000aabbccddee', 'hex');
    const frames = Buffer.concat([skippable, zstd.hello, skippable, zstd.yes, zstd.hello]);
    for (const chunkSize of [5, 1000, frames.length]) {
      expect(String(await unpack(frames, { chunkSize }))).toBe(`hello, layer\n${yes}hello, layer\n`);
    }
  });

  it('reads a frame shorter than a header may be, wherever it stands', async () => {
    // Magic, descriptor, window of 1 KiB, last raw block of one byte.
    const tiny = Buffer.from('28b52ffd000009000061', 'hex');
    expect(String(await unpack(tiny))).toBe('a');
    expect(String(await unpack(Buffer.concat([tiny, zstd.hello, tiny, tiny, tiny])))).toBe(
      'ahello, layer\naaa',
    );
  });

  it('allows zeros after gzip data, and nothing else', async () => {
    const gzip = gzipSync('hello');
    expect(String(await unpack(Buffer.concat([gzip, Buffer.alloc(100_000)])))).toBe('hello');
    const zeros = Buffer.concat([gzip, Buffer.alloc(100_000), Buffer.from('x')]);
    await expect(unpack(zeros, { chunkSize: 1000 })).rejects.toMatchObject({ code: 'SYNTAX' });
    for (const [bytes, chunkSize] of [
      [gzip, 1000],
      [gzip, gzip.length],
      [zstd.hello, 1000],
      [zstd.hello, zstd.hello.length],
    ] as const) {
      const garbage = Buffer.concat([bytes, Buffer.from('garbage that is no member')]);
      await expect(unpack(garbage, { chunkSize })).rejects.toMatchObject({
        code: 'SYNTAX',
        message: expect.stringMatching(/^layer x: damaged (gzip|zstd) data: /),
      });
    }
  });

  it('says that gzip and zstd data end early', async () => {
    const gzip = gzipSync(randomBytes(100_000));
    for (const bytes of [gzip, zstd.yes]) {
      for (const length of [11, bytes.length >> 1, bytes.length - 1]) {
        await expect(unpack(bytes.subarray(0, length))).rejects.toMatchObject({
          code: 'SYNTAX',
          message: expect.stringMatching(/^layer x: damaged (gzip|zstd) data: unexpected end$/),
        });
      }
    }
  });

  it('says that gzip and zstd data are damaged, whatever byte is wrong', async () => {
    const original = { gzip: gzipSync(randomBytes(2000)), zstd: zstd.yes };
    for (const bytes of Object.values(original)) {
      for (let i = 10; i < bytes.length; i += Math.max(1, bytes.length >> 6)) {
        const copy = Buffer.from(bytes);
        copy[i] = (copy[i] as number) ^ 0x55;
        // fzstd does not verify checksums, so some changes give other content; the digest tells those.
        await unpack(copy).catch((error: unknown) =>
          expect(error).toMatchObject({ name: /Error$/, code: /^(SYNTAX|UNSUPPORTED|LIMIT)$/ }),
        );
      }
    }
  });

  it('names compressions that it does not read', async () => {
    await expect(unpack(Buffer.from('BZh91AY&SYxxxxxxx'))).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      message: 'layer x: compressed with bzip2',
    });
    await expect(unpack(Buffer.from('fd377a585a000000', 'hex'))).rejects.toThrow('xz');
  });

  it('refuses bombs by ratio and total size, naming the flag', async () => {
    const bomb = gzipSync(Buffer.alloc(80 << 20), { level: 9 });
    for (const bytes of [bomb, zstd.bomb]) {
      await expect(unpack(bytes)).rejects.toMatchObject({
        code: 'LIMIT',
        hint: expect.stringContaining('limits.maxRatio'),
      });
    }
    await expect(
      unpack(gzipSync(Buffer.alloc(100_000)), { limits: { maxUnpackedSize: 99_999 } }),
    ).rejects.toMatchObject({
      code: 'LIMIT',
      message: 'layer x: unpacks to more than 97.7 KiB',
      hint: expect.stringContaining('limits.maxUnpackedSize'),
    });
    expect(await unpack(gzipSync(Buffer.alloc(100_000)), { limits: { maxRatio: 2 } })).toHaveLength(100_000);
  });

  it('refuses a zstd window that would fill memory, and blocks that only cost time', async () => {
    await expect(unpack(zstd.longWindow)).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringContaining('128 MiB'),
    });
    const single = Buffer.from('28b52ffde0ffffffffffffff7f010000', 'hex');
    await expect(unpack(single)).rejects.toMatchObject({ code: 'UNSUPPORTED' });
    const tooLong = Buffer.from('28b52ffd0040fbffff61', 'hex');
    await expect(unpack(tooLong)).rejects.toMatchObject({ code: 'SYNTAX' });
    const empty = Buffer.concat([Buffer.from('28b52ffd0078', 'hex'), Buffer.alloc(3_000_000)]);
    await expect(unpack(empty)).rejects.toMatchObject({ code: 'LIMIT' });
  });

  it('reads its source to the end, so that a check there counts', async () => {
    for (const bytes of [
      gzipSync('x'),
      Buffer.concat([gzipSync('x'), Buffer.alloc(50)]),
      zstd.hello,
      Buffer.from('plain'),
    ]) {
      const source = Readable.from(
        (async function* () {
          yield bytes;
          throw new Error('digest');
        })(),
        { objectMode: false },
      );
      await expect(drain(source)).rejects.toThrow('digest');
    }
  });

  it('destroys its source when it is left early', async () => {
    for (const bytes of [gzipSync(randomBytes(1 << 20)), zstd.yes, randomBytes(1 << 20)]) {
      const source = streamOf(bytes, 100);
      const chunks = decompress(source, { label: 'x' });
      await chunks.next();
      await chunks.return(undefined);
      expect(source.destroyed).toBe(true);
    }
  });

  it('stops on a signal', async () => {
    const controller = new AbortController();
    const source = new Readable({ read: () => undefined });
    setTimeout(() => controller.abort(), 5);
    await expect(drain(source, controller.signal)).rejects.toMatchObject({ code: 'CANCELLED' });
  });
});
