import type { CompressedContent } from '../catalogs/compressed-content.js';
import type { ContentReader } from '../catalogs/stored-content.js';
import type { Section } from '../catalogs/content-index.js';

const kilobyte = 1024;
const smallest = 8 * kilobyte;

interface Tier {
  bytes: number;
  limit: number;
  inUse: number;
  free: Buffer[];
}

/** Maximum free buffers per tier. */
const maxFree = 8;

/**
 * Pool of buffers for streams. Large ones make streams fast and are few; when slow clients have them all, small ones are
 * used, which bounds memory.
 */
export class BufferPool {
  readonly #small: Tier = { bytes: smallest, limit: Infinity, inUse: 0, free: [] };
  readonly #tiers: readonly Tier[] = [
    { bytes: 1024 * kilobyte, limit: 16, inUse: 0, free: [] },
    { bytes: 64 * kilobyte, limit: 256, inUse: 0, free: [] },
    this.#small,
  ];

  /** Returns the largest available buffer that is not larger than needed. */
  take(needed: number): Buffer {
    const tier =
      this.#tiers.find(({ bytes, limit, inUse }) => inUse < limit && bytes < needed * 2) ?? this.#small;
    tier.inUse++;
    return tier.free.pop() ?? Buffer.allocUnsafeSlow(tier.bytes);
  }

  give(buffer: Buffer): void {
    const tier = this.#tiers.find(({ bytes }) => bytes === buffer.length);
    if (tier === undefined) return;
    tier.inUse--;
    if (tier.free.length < maxFree) tier.free.push(buffer);
  }
}

/**
 * Yields the bytes of sections in pieces that are valid until the next one is requested. The next piece is read while one
 * is being used.
 */
export async function* readSections(
  reader: Pick<ContentReader, 'read'>,
  sections: readonly Section[],
  pool: BufferPool,
): AsyncGenerator<Buffer, void, undefined> {
  const total = getTotal(sections);
  if (total === 0) return;
  const first = pool.take(total);
  const buffers = [first];
  // The smallest buffers are for very many streams.
  if (total > first.length && first.length > smallest) buffers.push(pool.take(total));
  const cursor = { section: 0, done: 0 };
  let next: Promise<Buffer> | undefined;
  try {
    for (let turn = 0; ; turn = (turn + 1) % buffers.length) {
      next ??= fill(reader, sections, cursor, buffers[turn] as Buffer);
      const piece = await next;
      next = undefined;
      if (piece.length === 0) return;
      if (buffers.length > 1) {
        next = fill(reader, sections, cursor, buffers[(turn + 1) % buffers.length] as Buffer);
        // Awaited with the next piece; a failure before must not end the process.
        next.catch(() => undefined);
      }
      yield piece;
    }
  } finally {
    // The read may still write into its buffer.
    await next?.catch(() => undefined);
    for (const buffer of buffers) pool.give(buffer);
  }
}

/** Yields compressed content while it grows, in pieces as `readSections`. */
export async function* readCompressed(
  form: CompressedContent,
  pool: BufferPool,
): AsyncGenerator<Buffer, void, undefined> {
  for (let sent = 0; ;) {
    const length = await form.grownBeyond(sent);
    if (length === sent) return;
    yield* readSections(form, [{ offset: sent, length: length - sent }], pool);
    sent = length;
  }
}

async function fill(
  reader: Pick<ContentReader, 'read'>,
  sections: readonly Section[],
  cursor: { section: number; done: number },
  buffer: Buffer,
): Promise<Buffer> {
  let filled = 0;
  while (filled < buffer.length) {
    const section = sections[cursor.section];
    if (section === undefined) break;
    const length = Math.min(section.length - cursor.done, buffer.length - filled);
    await reader.read(buffer.subarray(filled, filled + length), section.offset + cursor.done);
    filled += length;
    cursor.done += length;
    if (cursor.done === section.length) {
      cursor.section++;
      cursor.done = 0;
    }
  }
  return buffer.subarray(0, filled);
}

/** Returns the total size of sections. */
export function getTotal(sections: readonly Section[]): number {
  let total = 0;
  for (const { length } of sections) total += length;
  return total;
}
