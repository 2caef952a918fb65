import type { Decompress } from 'fzstd';
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
  const fzstd = await import('fzstd');
  const frames = new ZstdFrames(fzstd.Decompress, label);
  for await (const chunk of source) {
    for (const data of frames.push(chunk)) yield data;
  }
  for (const data of frames.end()) yield data;
}

/** Frames of which pieces of any size arrive. */
class ZstdFrames {
  readonly #label: string;
  readonly #decoder: Decompress;
  /** Output of the last block, or checksum. */
  #decoded: Buffer[] = [];
  /** Bytes that are not read yet. */
  #pending: Buffer = Buffer.alloc(0);
  /** Next thing to read, after `skip` bytes. */
  #position: 'frame' | 'block' | 'checksum' = 'frame';
  #skip = 0;
  /** Header of the frame that the decoder does not have yet. */
  #header = this.#pending;
  #window = 0;
  #hasChecksum = false;
  /** Bytes that fzstd moves, and those it returned, for the limit of tiny blocks. */
  #moved = 0;
  #unpacked = 0;

  constructor(decoder: typeof Decompress, label: string) {
    this.#label = label;
    this.#decoder = new decoder((data) => {
      if (data.length > 0) this.#decoded.push(Buffer.from(data.buffer, data.byteOffset, data.length));
    });
  }

  /** Yields what the chunk completes, decompressed on demand. */
  *push(chunk: Buffer): Generator<Buffer> {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    for (;;) {
      const output = this.#readNext();
      if (output === undefined) return;
      yield* output;
    }
  }

  /** Returns the rest of the output. */
  end(): readonly Buffer[] {
    const isWithin = this.#position === 'block' || (this.#position === 'checksum' && this.#hasChecksum);
    if (this.#pending.length > 0 || isWithin || this.#skip > 0) throw this.#damaged('unexpected end');
    // fzstd holds frames of less than 18 bytes back until the input ends.
    return this.#decode(this.#pending, true);
  }

  /** Reads the next header, block or checksum, and returns its output; undefined if its end is not there yet. */
  #readNext(): readonly Buffer[] | undefined {
    if (this.#skip > 0) {
      this.#skip -= this.#take(Math.min(this.#skip, this.#pending.length)).length;
      if (this.#skip > 0) return undefined;
    }
    if (this.#position === 'frame') return this.#readFrame();
    if (this.#position === 'block') return this.#readBlock();
    return this.#readChecksum();
  }

  #readFrame(): readonly Buffer[] | undefined {
    const pending = this.#pending;
    if (pending.length < 8) return undefined;
    const magic = pending.readUInt32LE(0);
    if (magic >= 0x184d2a50 && magic <= 0x184d2a5f) {
      this.#skip = pending.readUInt32LE(4) + 8;
      return [];
    }
    if (magic !== 0xfd2fb528) throw this.#damaged('bytes that are not a frame');
    const length = frameHeaderLength(pending[4] as number);
    if (pending.length < length) return undefined;
    this.#header = this.#take(length);
    ({ window: this.#window, hasChecksum: this.#hasChecksum } = readFrameHeader(this.#header, this.#label));
    this.#position = 'block';
    return [];
  }

  #readBlock(): readonly Buffer[] | undefined {
    if (this.#pending.length < 3) return undefined;
    const fields = this.#pending.readUIntLE(0, 3);
    const isLast = (fields & 1) === 1;
    const type = (fields >> 1) & 3;
    const size = fields >> 3;
    if (type === 3 || size > maxBlock) throw this.#damaged('bad block');
    const end = 3 + (type === 1 ? 1 : size);
    if (this.#pending.length < end) return undefined;
    this.#moved += this.#window;
    if (this.#moved > 16 * gibibyte + 512 * this.#unpacked)
      throw new LimitError('zstd data with too many tiny blocks', { subject: this.#label });
    const header = this.#header;
    const block = this.#take(end);
    // fzstd needs the header in one piece with the following data.
    const output = this.#decode(header.length === 0 ? block : Buffer.concat([header, block]));
    for (const data of output) this.#unpacked += data.length;
    this.#header = header.subarray(header.length);
    if (isLast) this.#position = 'checksum';
    return output;
  }

  #readChecksum(): readonly Buffer[] | undefined {
    const length = this.#hasChecksum ? 4 : 0;
    if (this.#pending.length < length) return undefined;
    this.#position = 'frame';
    return length > 0 ? this.#decode(this.#take(length)) : [];
  }

  /** Returns the next bytes. */
  #take(length: number): Buffer {
    const taken = this.#pending.subarray(0, length);
    this.#pending = this.#pending.subarray(length);
    return taken;
  }

  #decode(unit: Buffer, final = false): readonly Buffer[] {
    this.#decoded = [];
    try {
      this.#decoder.push(unit, final);
    } catch (error) {
      throw this.#damaged(getMessage(error), error);
    }
    return this.#decoded;
  }

  #damaged(problem: string, cause?: unknown): OpmateError {
    return damaged(this.#label, problem, cause);
  }
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
