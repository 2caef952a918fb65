import { LimitError, OpmateError, getMessage } from '../core/errors.js';
import { showSize } from './limits.js';

/**
 * Maximum window of a frame. Image tools use up to 32 MiB; only `zstd --ultra` and `--long` exceed it, and every open
 * layer holds its window in memory.
 */
const maxWindow = 32 * 1024 * 1024;
/** Maximum size of a block. RFC 8878, 3.1.1.2.4. */
const maxBlock = 128 * 1024;
const gibibyte = 1024 ** 3;

/**
 * Decompresses zstd frames (RFC 8878), including skippable ones. Yields at most 128 KiB at a time, so that limits
 * apply before the output fills memory.
 *
 * Passes frames to fzstd block by block: fzstd checks neither window nor block sizes, and moves its whole window for
 * each block, which takes minutes for a file of empty blocks. Node.js's own decoder ends after the first frame, while
 * zstd:chunked layers have one per file.
 *
 * Throws OpmateError SYNTAX, UNSUPPORTED (window, dictionary) or LIMIT.
 */
export async function* decompressZstd(source: AsyncIterable<Buffer>, label: string): AsyncGenerator<Buffer> {
  const { Decompress } = await import('fzstd');
  let decoded: Buffer[] = [];
  const decoder = new Decompress((data) => {
    if (data.length > 0) decoded.push(Buffer.from(data.buffer, data.byteOffset, data.length));
  });
  const decode = (unit: Buffer, final = false): Buffer[] => {
    decoded = [];
    try {
      decoder.push(unit, final);
    } catch (error) {
      throw damaged(label, getMessage(error), error);
    }
    return decoded;
  };

  let pending: Buffer = Buffer.alloc(0);
  let position: 'frame' | 'block' | 'checksum' = 'frame';
  let skip = 0;
  let window = 0;
  let hasChecksum = false;
  let header: Buffer = pending;
  let moved = 0;
  let unpacked = 0;
  for await (const chunk of source) {
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    for (;;) {
      if (skip > 0) {
        const step = Math.min(skip, pending.length);
        pending = pending.subarray(step);
        skip -= step;
        if (skip > 0) break;
      }
      if (position === 'frame') {
        if (pending.length < 8) break;
        const magic = pending.readUInt32LE(0);
        if (magic >= 0x184d2a50 && magic <= 0x184d2a5f) {
          skip = pending.readUInt32LE(4) + 8;
          continue;
        }
        if (magic !== 0xfd2fb528) throw damaged(label, 'bytes that are not a frame');
        const length = frameHeaderLength(pending[4] as number);
        if (pending.length < length) break;
        header = pending.subarray(0, length);
        ({ window, hasChecksum } = readFrameHeader(header, label));
        pending = pending.subarray(length);
        position = 'block';
      } else if (position === 'block') {
        if (pending.length < 3) break;
        const fields = pending.readUIntLE(0, 3);
        const last = (fields & 1) === 1;
        const type = (fields >> 1) & 3;
        const size = fields >> 3;
        if (type === 3 || size > maxBlock) throw damaged(label, 'bad block');
        const end = 3 + (type === 1 ? 1 : size);
        if (pending.length < end) break;
        moved += window;
        if (moved > 16 * gibibyte + 512 * unpacked) {
          throw new LimitError('zstd data with too many tiny blocks', { subject: label });
        }
        const unit = pending.subarray(0, end);
        // fzstd needs the header in one piece with the following data.
        for (const data of decode(header.length === 0 ? unit : Buffer.concat([header, unit]))) {
          unpacked += data.length;
          yield data;
        }
        header = header.subarray(header.length);
        pending = pending.subarray(end);
        if (last) position = 'checksum';
      } else {
        const length = hasChecksum ? 4 : 0;
        if (pending.length < length) break;
        if (length > 0) yield* decode(pending.subarray(0, length));
        pending = pending.subarray(length);
        position = 'frame';
      }
    }
  }
  if (pending.length > 0 || position === 'block' || skip > 0 || (position === 'checksum' && hasChecksum)) {
    throw damaged(label, 'unexpected end');
  }
  // fzstd holds frames of less than 18 bytes back until the input ends.
  yield* decode(pending, true);
}

/** Returns the length of a frame header with its magic number, by its descriptor byte. RFC 8878, 3.1.1.1. */
function frameHeaderLength(descriptor: number): number {
  const single = (descriptor >> 5) & 1;
  const sizeFlag = descriptor >> 6;
  return 6 - single + [0, 1, 2, 4][descriptor & 3]! + (sizeFlag === 0 ? single : 1 << sizeFlag);
}

function readFrameHeader(header: Buffer, label: string): { window: number; hasChecksum: boolean } {
  const descriptor = header[4] as number;
  if ((descriptor & 8) !== 0) throw damaged(label, 'bad frame header');
  if ((descriptor & 3) !== 0) {
    throw new OpmateError('UNSUPPORTED', 'zstd data that needs a dictionary', { subject: label });
  }
  let window: number;
  if ((descriptor & 0x20) === 0) {
    const exponent = (header[5] as number) >> 3;
    const base = 2 ** (10 + exponent);
    window = base + (base / 8) * ((header[5] as number) & 7);
  } else {
    const length = header.length - 5;
    window = length === 8 ? Number(header.readBigUInt64LE(5)) : header.readUIntLE(5, length);
    if (length === 2) window += 256;
  }
  if (window > maxWindow) {
    throw new OpmateError('UNSUPPORTED', `zstd window of ${showSize(window)}, over ${showSize(maxWindow)}`, {
      subject: label,
      hint: 'compress the layer again without --long or --ultra',
    });
  }
  return { window, hasChecksum: (descriptor & 4) !== 0 };
}

function damaged(label: string, problem: string, cause?: unknown): OpmateError {
  return new OpmateError('SYNTAX', `damaged zstd data: ${problem}`, { subject: label, cause });
}
