import type { FileHandle } from 'node:fs/promises';
import { OpmateError } from '../core/errors.js';

const chunkSize = 1024 * 1024;

/**
 * Reads a part of a file, one piece ahead. A piece is valid until the next is requested. Throws OpmateError DIGEST,
 * naming `subject`, if the file is too short.
 */
export async function* readRegion(
  handle: FileHandle,
  start: number,
  length: number,
  subject: string,
): AsyncGenerator<Buffer> {
  const size = Math.min(chunkSize, length);
  const buffers = [Buffer.allocUnsafe(size), Buffer.allocUnsafe(length > size ? size : 0)] as const;
  const read = async (offset: number, buffer: Buffer): Promise<Buffer> => {
    const wanted = Math.min(buffer.length, start + length - offset);
    const { bytesRead } = await handle.read(buffer, 0, wanted, offset);
    if (bytesRead === 0) throw new OpmateError('DIGEST', `ends at byte ${offset}`, { subject });
    return buffer.subarray(0, bytesRead);
  };
  let position = start;
  let [current, other] = buffers;
  let next = length > 0 ? read(position, current) : undefined;
  try {
    while (next !== undefined) {
      const piece: Buffer = await next;
      position += piece.length;
      [current, other] = [other, current];
      next = position < start + length ? read(position, current) : undefined;
      // A read-ahead error is thrown when its piece is requested, if ever.
      next?.catch(() => undefined);
      yield piece;
    }
  } finally {
    await next?.catch(() => undefined);
  }
}

/**
 * Fills `target` from `position` on, with as many reads as needed. Returns the number of bytes read, which is smaller
 * only at the end of the file. Throws system errors unchanged.
 */
export async function fillBuffer(handle: FileHandle, target: Buffer, position: number): Promise<number> {
  let filled = 0;
  while (filled < target.length) {
    const left = target.length - filled;
    const { bytesRead } = await handle.read(target, filled, left, position + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return filled;
}

/** Returns `length` bytes from `position` on, fewer at the end of the file. Throws as `fillBuffer`. */
export async function readBytes(handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  return bytes.subarray(0, await fillBuffer(handle, bytes, position));
}

/** Writes all of `bytes` at a position. Throws system errors unchanged. */
export async function writeBytes(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}
