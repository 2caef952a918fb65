import { describe, expect, it } from 'vitest';
import type { ContentReader } from '../../../../src/serve/catalogs/stored-content.js';
import type { Section } from '../../../../src/serve/catalogs/content-index.js';
import { BufferPool, readSections } from '../../../../src/serve/http/content-stream.js';

const megabyte = 1024 * 1024;
const content = Buffer.alloc(5 * megabyte, 'the quick brown fox jumps over the lazy dog, again and again. ');

function readerOf(bytes: Buffer): ContentReader & { reads: number } {
  return {
    reads: 0,
    read(target, position) {
      this.reads++;
      if (position + target.length > bytes.length) return Promise.reject(new Error('ends too early'));
      bytes.copy(target, 0, position);
      return Promise.resolve();
    },
    close: () => undefined,
  };
}

async function readAll(
  sections: Section[],
  pool = new BufferPool(),
): Promise<{ bytes: Buffer; pieces: number }> {
  const pieces: Buffer[] = [];
  for await (const piece of readSections(readerOf(content), sections, pool)) pieces.push(Buffer.from(piece));
  return { bytes: Buffer.concat(pieces), pieces: pieces.length };
}

describe('serve/http/content-stream', () => {
  it('reads everything in large pieces', async () => {
    const { bytes, pieces } = await readAll([{ offset: 0, length: content.length }]);
    expect(bytes.equals(content)).toBe(true);
    expect(pieces).toBe(5);
  });

  it('reads many sections together', async () => {
    const sections = Array.from({ length: 1000 }, (_, i) => ({
      offset: i * 5000 + 7,
      length: 1 + (i % 130),
    }));
    const { bytes, pieces } = await readAll(sections);
    const expected = sections.map(({ offset, length }) => content.subarray(offset, offset + length));
    expect(bytes.equals(Buffer.concat(expected))).toBe(true);
    expect(pieces).toBeLessThan(10);
  });

  it.each([[[]], [[{ offset: 5, length: 0 }]]])('reads nothing of %j', async (sections) => {
    expect(await readAll(sections)).toEqual({ bytes: Buffer.alloc(0), pieces: 0 });
  });

  it('fails where the content does', async () => {
    const pieces = readSections(
      readerOf(content),
      [{ offset: content.length - 3, length: 4 }],
      new BufferPool(),
    );
    await expect(pieces.next()).rejects.toThrow('ends too early');
  });

  it('gives thousands of slow readers small buffers, and large ones again when they are gone', async () => {
    const pool = new BufferPool();
    const open: AsyncGenerator<Buffer, void, undefined>[] = [];
    let held = 0;
    for (let i = 0; i < 2000; i++) {
      const pieces = readSections(readerOf(content), [{ offset: 0, length: content.length }], pool);
      const { value } = await pieces.next();
      held += (value as Buffer).buffer.byteLength;
      open.push(pieces);
    }
    expect(held).toBeLessThan(48 * megabyte);
    for (const pieces of open) await pieces.return();
    const { bytes, pieces } = await readAll([{ offset: 0, length: content.length }], pool);
    expect(bytes.equals(content)).toBe(true);
    expect(pieces).toBe(5);
  });
});
