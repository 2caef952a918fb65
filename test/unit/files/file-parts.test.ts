import { open, readFile } from 'node:fs/promises';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FilePart, FilePartReader, JoinedFileWriter } from '../../../src/files/file-parts.js';
import { directoryWith } from '../../support/temporary.js';

async function readPart(reader: FilePartReader, part: FilePart): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of reader.read(part)) pieces.push(piece);
  return Buffer.concat(pieces);
}

describe('files/file-parts', () => {
  it('reads parts in any order, of several files', async () => {
    const texts = { a: Buffer.alloc(700_000, 'abcdefg'), b: Buffer.alloc(300, 'xyz') };
    const directory = await directoryWith(texts);
    const part = fc.record({
      name: fc.constantFrom('a' as const, 'a' as const, 'b' as const),
      from: fc.nat(1000),
      size: fc.nat(1000),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(part, { maxLength: 12 }), async (parts) => {
        const reader = new FilePartReader();
        let end = 0;
        try {
          for (const { name, from, size } of parts) {
            const text = texts[name];
            // Every other part follows the one before it.
            const offset = Math.min(from % 2 === 0 ? end : from * 600, text.length);
            end = Math.min(offset + size * 600, text.length);
            const read = await readPart(reader, {
              ...{ file: path.join(directory, name), offset, size: end - offset },
            });
            expect(read.equals(text.subarray(offset, end))).toBe(true);
          }
        } finally {
          await reader.close();
        }
      }),
      { numRuns: 60 },
    );
  });

  it('refuses a whole file of another size, and a part beyond the end', async () => {
    const file = path.join(await directoryWith({ a: '7 bytes' }), 'a');
    const reader = new FilePartReader();
    expect(String(await readPart(reader, { file, size: 7 }))).toBe('7 bytes');
    await expect(readPart(reader, { file, size: 6 })).rejects.toMatchObject({ code: 'INVALID' });
    await expect(readPart(reader, { file, size: 8 })).rejects.toMatchObject({ code: 'INVALID' });
    await expect(readPart(reader, { file, offset: 2, size: 6 })).rejects.toMatchObject({ code: 'INVALID' });
    expect(String(await readPart(reader, { file, offset: 2, size: 5 }))).toBe('bytes');
    await reader.close();
    await expect(readPart(reader, { file: `${file}-gone`, size: 1 })).rejects.toMatchObject({
      code: 'ENOENT',
    });
  });

  it('writes pieces of every size one after the other, into a new file only', async () => {
    const file = path.join(await directoryWith(), 'a');
    const pieces = [3, 1_048_576, 0, 2_000_000, 1_048_570, 10].map((size, index) =>
      Buffer.alloc(size, String(index)),
    );
    const writer = await JoinedFileWriter.create(file);
    for (const piece of pieces) await writer.write(piece);
    const whole = Buffer.concat(pieces);
    expect(writer.size).toBe(whole.length);
    await writer.flush();
    await writer.close();
    expect((await readFile(file)).equals(whole)).toBe(true);
    await expect(JoinedFileWriter.create(file)).rejects.toMatchObject({ code: 'EEXIST' });
    const handle = await open(file);
    expect(((await handle.stat()).mode & 0o777).toString(8)).toBe('600');
    await handle.close();
  });
});
