import { randomBytes } from 'node:crypto';
import { createGzip, gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { CompressedContent } from '../../../../src/serve/catalogs/compressed-content.js';
import { type ContentFile, MemoryFile } from '../../../../src/serve/catalogs/content-file.js';
import { BufferPool, readCompressed } from '../../../../src/serve/http/content-stream.js';

async function readAll(form: CompressedContent): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of readCompressed(form, new BufferPool())) pieces.push(Buffer.from(piece));
  return Buffer.concat(pieces);
}

describe('serve/catalogs/compressed-content', () => {
  it('is read while it is made, and after that', async () => {
    const content = randomBytes(1_000_000);
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    async function* pieces(): AsyncGenerator<Buffer> {
      yield content.subarray(0, 600_000);
      await released;
      yield content.subarray(600_000);
    }
    const form = new CompressedContent(pieces(), createGzip(), new MemoryFile());
    const early = readAll(form);
    const length = await form.grownBeyond(0);
    expect(length).toBeGreaterThan(0);
    expect(form.size).toBeUndefined();
    release();
    const bytes = await early;
    expect(gunzipSync(bytes).equals(content)).toBe(true);
    expect(form.size).toBe(bytes.length);
    expect((await readAll(form)).equals(bytes)).toBe(true);
    await form.close();
  });

  it('fails its readers where it cannot be written', async () => {
    class FullFile extends MemoryFile implements ContentFile {
      override append(): Promise<void> {
        return Promise.reject(new Error('no space left on device'));
      }
    }
    async function* pieces(): AsyncGenerator<Buffer> {
      yield randomBytes(1_000_000);
    }
    const form = new CompressedContent(pieces(), createGzip(), new FullFile());
    await expect(readAll(form)).rejects.toThrow('cannot be kept');
    expect(form.isBroken).toBe(true);
    await form.close();
  });

  it('is not made to its end once nobody wants it', async () => {
    let made = 0;
    async function* pieces(): AsyncGenerator<Buffer> {
      for (; ; made++) yield randomBytes(100_000);
    }
    const form = new CompressedContent(pieces(), createGzip(), new MemoryFile());
    await form.grownBeyond(0);
    await form.close();
    const before = made;
    await new Promise((resolve) => setImmediate(resolve));
    expect(made).toBe(before);
  });
});
