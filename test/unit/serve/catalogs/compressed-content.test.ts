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
  it('is readable while it is written, and afterwards', async () => {
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

  it('fails its readers if writing fails', async () => {
    class FullFile extends MemoryFile implements ContentFile {
      override append(): Promise<void> {
        return Promise.reject(new Error('no space left on device'));
      }
    }
    async function* pieces(): AsyncGenerator<Buffer> {
      yield randomBytes(1_000_000);
    }
    const form = new CompressedContent(pieces(), createGzip(), new FullFile());
    await expect(readAll(form)).rejects.toThrow('cannot write the compressed catalog');
    expect(form.isBroken).toBe(true);
    await form.close();
  });

  it('stops writing when it is closed', async () => {
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
