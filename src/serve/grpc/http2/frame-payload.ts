import { ConnectionError, createViolation, errorCodes, frameFlags } from './protocol.js';

/** Removes the padding of a DATA or HEADERS frame. Throws ConnectionError PROTOCOL_ERROR. */
export function removePadding(flags: number, payload: Buffer): Buffer {
  if ((flags & frameFlags.PADDED) === 0) return payload;
  const padding = payload[0] ?? 0;
  if (padding >= payload.length) throw createViolation('padding exceeds the payload');
  return payload.subarray(1, payload.length - padding);
}

/** Throws ConnectionError FRAME_SIZE_ERROR for a payload of another size. */
export function requireSize(payload: Buffer, size: number): void {
  if (payload.length !== size) {
    throw new ConnectionError(errorCodes.FRAME_SIZE_ERROR, `expected ${size} bytes, got ${payload.length}`);
  }
}
