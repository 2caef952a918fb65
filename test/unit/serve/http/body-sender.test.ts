import { randomBytes } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { CompressedReplies } from '../../../../src/serve/http/body-sender.js';

/** Pieces in one buffer that is filled anew for each, as streams of contents do it, and how often they were read. */
function readerOf(texts: readonly Buffer[]) {
  let reads = 0;
  async function* readPieces(): AsyncGenerator<Buffer, void, undefined> {
    reads++;
    const buffer = Buffer.alloc(64 * 1024);
    for (const text of texts) {
      await new Promise((resolve) => setImmediate(resolve));
      text.copy(buffer);
      yield buffer.subarray(0, text.length);
    }
  }
  return { readPieces, getReads: () => reads };
}

const incompressible = (count: number) => Array.from({ length: count }, () => randomBytes(50_000));

describe('serve/http/body-sender', () => {
  it('compresses once for all who ask, at once and later', async () => {
    const texts = incompressible(5);
    const { readPieces, getReads } = readerOf(texts);
    const replies = new CompressedReplies();
    const leases = await Promise.all([1, 2, 3].map(() => replies.lease('a', 'gzip', readPieces)));
    leases.push(await replies.lease('a', 'gzip', readPieces));
    for (const lease of leases) {
      expect(gunzipSync(lease?.body ?? '').equals(Buffer.concat(texts))).toBe(true);
      lease?.release();
    }
    expect(getReads()).toBe(1);
  });

  it('drops those that were used longest ago, none that is being sent', async () => {
    const replies = new CompressedReplies(650_000);
    const sources = Array.from({ length: 4 }, () => readerOf(incompressible(4)));
    const lease = (index: number) => {
      const { readPieces } = sources[index] as (typeof sources)[number];
      return replies.lease(`key ${index}`, 'gzip', readPieces);
    };
    const first = await lease(0);
    for (const index of [1, 2, 3]) (await lease(index))?.release();
    // 200 KB each: the first is being sent, and of the others two are kept.
    for (const index of [0, 3, 2]) (await lease(index))?.release();
    expect(sources.map(({ getReads }) => getReads())).toEqual([1, 1, 1, 1]);
    first?.release();
    (await lease(1))?.release();
    expect(sources.map(({ getReads }) => getReads())).toEqual([1, 2, 1, 1]);
  });

  it('makes no more than eight at once', async () => {
    const replies = new CompressedReplies();
    const { readPieces } = readerOf(incompressible(1));
    const leases = await Promise.all(
      Array.from({ length: 10 }, (_, index) => replies.lease(String(index), 'gzip', readPieces)),
    );
    expect(leases.filter((lease) => lease !== undefined)).toHaveLength(8);
  });

  it('forgets a reply that could not be read', async () => {
    const replies = new CompressedReplies();
    const failing = async function* (): AsyncGenerator<Buffer, void, undefined> {
      yield await Promise.reject(new Error('gone'));
    };
    await expect(replies.lease('a', 'gzip', failing)).rejects.toThrow('gone');
    const { readPieces } = readerOf([Buffer.from('text')]);
    const lease = await replies.lease('a', 'gzip', readPieces);
    expect(gunzipSync(lease?.body ?? '').toString()).toBe('text');
  });
});
