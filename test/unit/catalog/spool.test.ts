import { mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { Spool } from '../../../src/catalog/spool.js';
import { directoryWith } from '../../support/temporary.js';

describe('catalog/spool', () => {
  it('gives back every piece that many writers left at once, from memory and from the file', async () => {
    const directory = path.join(await directoryWith(), 'temporary');
    await mkdir(directory);
    const spool = new Spool(directory);
    // 60 MiB in all: about three quarters go to the file.
    const textOf = (i: number): string => `${i} `.padEnd(1024 * 1024, String(i % 10));
    const numbers = Array.from({ length: 60 }, (_, i) => i);
    const slots = await Promise.all(numbers.map((i) => spool.append(textOf(i))));
    for (const i of numbers) {
      const bytes = await spool.read(slots[i] as (typeof slots)[number]);
      expect(bytes.equals(Buffer.from(textOf(i)))).toBe(true);
    }
    expect(await readdir(directory)).toEqual([]);
    await spool.close();
  });

  it('names its directory when nothing can be written there', async () => {
    const directory = path.join(await directoryWith(), 'missing');
    const spool = new Spool(directory);
    await expect(spool.append('x'.repeat(49 * 1024 * 1024))).rejects.toMatchObject({
      code: 'IO',
      message: `${directory}: cannot write temporary data: no such file or directory`,
    });
    await spool.close();
  });
});
