import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { computeDigest, isDigest, parseDigest, verifyContent } from '../../../src/core/digest.js';
import { DigestMismatchError, OpmateError } from '../../../src/core/errors.js';

const hex = '0123456789abcdef'.repeat(4);

describe('parseDigest', () => {
  it.each([
    ['sha256', 1],
    ['sha384', 1.5],
    ['sha512', 2],
  ])('reads %s', (algorithm, factor) => {
    const digits = hex.repeat(2).slice(0, 64 * factor);
    expect(parseDigest(`${algorithm}:${digits}`)).toEqual({ algorithm, hex: digits });
  });

  it.each([
    ['', 'invalid checksum digest format'],
    ['sha256', 'invalid checksum digest format'],
    ['sha256:', 'invalid checksum digest format'],
    [`:${hex}`, 'invalid checksum digest format'],
    ['sha256:../../x', 'invalid checksum digest length'],
    [`sha256:${hex.slice(1)}`, 'invalid checksum digest length'],
    [`sha256:${hex}0`, 'invalid checksum digest length'],
    [`sha256:${hex}\n`, 'invalid checksum digest length'],
    [`sha512:${hex}`, 'invalid checksum digest length'],
    [`sha256:${hex.toUpperCase()}`, 'invalid checksum digest format'],
    [`sha256:${hex.slice(3)}../`, 'invalid checksum digest format'],
    [`SHA256:${hex}`, 'invalid checksum digest format'],
    [`../sha256:${hex}`, 'invalid checksum digest format'],
    ['md5:d41d8cd98f00b204e9800998ecf8427e', 'unsupported digest algorithm'],
    [`toString:${hex}`, 'invalid checksum digest format'],
    [`constructor:${hex}`, 'unsupported digest algorithm'],
  ])('refuses %j', (text, reason) => {
    expect(isDigest(text)).toBe(false);
    expect(() => parseDigest(text)).toThrow(OpmateError);
    expect(() => parseDigest(text)).toThrow(reason);
  });

  it('accepts nothing that could leave a directory', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string().map((text) => `sha256:${text}`),
        ),
        (text) => {
          if (isDigest(text)) expect(text).toMatch(/^sha\d+:[0-9a-f]+$/);
        },
      ),
    );
  });
});

describe('verifyContent', () => {
  const content = Buffer.from('some content of a layer');
  const expected = { digest: computeDigest(content), size: content.length, subject: 'layer 1' };

  async function passThrough(
    chunks: Buffer[],
    promised: { digest: string; size: number; subject: string },
  ): Promise<{ passed: Buffer; failure: unknown }> {
    const passed: Buffer[] = [];
    let failure: unknown;
    await pipeline(Readable.from(chunks), verifyContent(promised), async (source: AsyncIterable<Buffer>) => {
      for await (const chunk of source) passed.push(chunk);
    }).catch((error: unknown) => {
      failure = error;
    });
    return { passed: Buffer.concat(passed), failure };
  }

  it('passes content in any cut', async () => {
    for (const chunks of [[content], [content.subarray(0, 5), content.subarray(5)]]) {
      expect(await passThrough(chunks, expected)).toEqual({ passed: content, failure: undefined });
    }
    expect(
      await buffer(
        Readable.from([]).pipe(verifyContent({ digest: computeDigest(''), size: 0, subject: 'x' })),
      ),
    ).toEqual(Buffer.alloc(0));
    const digest = computeDigest(content, 'sha512');
    expect((await passThrough([content], { ...expected, digest })).failure).toBeUndefined();
  });

  it('fails at the end when the content is another', async () => {
    const other = Buffer.from(content);
    other[0] = 0;
    const { failure } = await passThrough([other], expected);
    expect(failure).toBeInstanceOf(DigestMismatchError);
    expect((failure as Error).message).toBe(`layer 1: content has digest ${computeDigest(other)}`);
  });

  it('fails when the content is shorter', async () => {
    const { failure } = await passThrough([content.subarray(1)], expected);
    expect((failure as Error).message).toBe('layer 1: expected 23 bytes, got 22');
  });

  it('stops as soon as the content is longer', async () => {
    async function* endless(): AsyncGenerator<Buffer> {
      for (;;) yield content;
    }
    const passed: Buffer[] = [];
    const reading = pipeline(Readable.from(endless()), verifyContent(expected), async (source) => {
      for await (const chunk of source as AsyncIterable<Buffer>) passed.push(chunk);
    });
    await expect(reading).rejects.toThrow('layer 1: expected 23 bytes, got more');
    expect(Buffer.concat(passed).length).toBeLessThanOrEqual(content.length);
  });

  it.each([-1, 2 ** 62, Number.NaN])('does not trust a size of %d', async (size) => {
    expect((await passThrough([content], { ...expected, size })).failure).toBeInstanceOf(DigestMismatchError);
  });

  it('refuses to start on something that is not a digest', () => {
    expect(() => verifyContent({ ...expected, digest: 'md5:00' })).toThrow('unsupported digest algorithm');
  });
});
