import { readFile, readdir, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readUnfinishedArchives } from '../../../../src/oci/archive-set/archive-directory.js';
import { type ArchivedBlob, writeArchiveSet } from '../../../../src/oci/archive-set/archive-set-writer.js';
import { readArchiveIndex } from '../../../../src/oci/archive-set/archive-index.js';
import { descriptorOf, streamOf } from '../../../support/images.js';
import { directoryWith } from '../../../support/temporary.js';

const contents = ['one', 'two '.repeat(5000), 'three'].map((text) => Buffer.from(text));
const digests = contents.map((bytes) => descriptorOf(bytes).digest);

/** Writes three blobs, in the order of their digests; those of `failing` cannot be had. */
async function write(directory: string, failing: readonly number[], partBytes = 1e6): Promise<string> {
  const blobs = contents.map((bytes, i): ArchivedBlob => ({
    descriptor: descriptorOf(bytes),
    open: () => (failing.includes(i) ? Promise.reject(new Error(`no ${i}`)) : streamOf(bytes)),
  }));
  try {
    await writeArchiveSet(directory, [], blobs, { partBytes, lock: '{}', concurrency: 1 });
    return 'written';
  } catch (error) {
    return (error as Error).message;
  }
}

async function filesOf(directory: string): Promise<Record<string, string>> {
  const files = (await readdir(directory)).sort();
  return Object.fromEntries(
    await Promise.all(
      files.map(
        async (name) => [name, (await readFile(path.join(directory, name))).toString('hex')] as const,
      ),
    ),
  );
}

describe('oci/archive-directory, unfinished sets', () => {
  it.each([1e6, 30_000, 4096])(
    'tells what is whole in parts of %i bytes, and changes nothing',
    async (partBytes) => {
      const directory = await directoryWith();
      const last = [0, 1, 2].sort((a, b) =>
        (digests[a] as string) < (digests[b] as string) ? 1 : -1,
      )[0] as number;
      const large = partBytes < 20_000 ? 1 : undefined;
      const failing = last === large ? ([0, 2].find((i) => i !== last) as number) : last;
      expect(await write(directory, [failing], partBytes)).toBe(`no ${failing}`);
      const before = await filesOf(directory);
      const [archive, ...more] = await readUnfinishedArchives(directory);
      expect(more).toEqual([]);
      expect([...(archive?.index.blobs.keys() ?? [])].sort()).toEqual([...digests].sort());
      const written = archive?.written ?? new Set();
      expect(written.has(digests[failing] as string)).toBe(false);
      expect(written.size).toBeGreaterThan(0);
      expect(await filesOf(directory)).toEqual(before);
      expect(await write(directory, [], partBytes)).toBe('written');
      expect(await readUnfinishedArchives(directory)).toEqual([]);
      expect((await readArchiveIndex(directory)).blobs.size).toBe(3);
    },
  );

  it('ignores parts of another size and invalid indexes', async () => {
    const directory = await directoryWith({
      'mirror_archive.0123456789abcdef.partial': '{"version": 1}',
      'mirror_archive.partial': 'x',
      'mirror_000001.0123456789abcdef.partial': 'x',
    });
    const last = [0, 1, 2].sort((a, b) =>
      (digests[a] as string) < (digests[b] as string) ? 1 : -1,
    )[0] as number;
    await write(directory, [last]);
    const found = await readUnfinishedArchives(directory);
    expect(found.map(({ written }) => written.size)).toEqual([2]);
    const part = (await readdir(directory)).find((name) => /^mirror_000001\.(?!0123)/.test(name)) as string;
    await truncate(path.join(directory, part), 100);
    expect((await readUnfinishedArchives(directory)).map(({ written }) => written.size)).toEqual([0]);
    await writeFile(path.join(directory, part), '');
    expect((await readUnfinishedArchives(directory)).map(({ written }) => written.size)).toEqual([0]);
  });

  it('fails for a missing directory and stops when cancelled', async () => {
    await expect(readUnfinishedArchives('/nonexistent/x')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const directory = await directoryWith();
    await write(directory, [0, 1, 2]);
    const signal = AbortSignal.abort();
    await expect(readUnfinishedArchives(directory, { signal })).rejects.toMatchObject({ code: 'CANCELLED' });
  });
});
