import { LimitError } from '../core/errors.js';

/** Limits for reading an image or archive. Sizes are in bytes. */
export interface ArchiveLimits {
  /** Maximum entries over all layers of an image, including implied directories. */
  maxEntries: number;
  /** Maximum files kept of them; default: unlimited. */
  maxFiles?: number;
  /** Maximum decompressed bytes over all layers of an image, including skipped entries. */
  maxUnpackedSize: number;
  /** Maximum size of a kept file; skipped entries may be larger. */
  maxFileSize: number;
  /** Maximum size of a file read into memory. */
  maxMetadataFileSize: number;
  /** Maximum decompression ratio of a layer. */
  maxRatio: number;
  /** Decompressed size below which the ratio is not checked. */
  ratioThreshold: number;
}

const mebibyte = 1024 * 1024;

export const defaultArchiveLimits: ArchiveLimits = {
  maxEntries: 200_000,
  maxUnpackedSize: 4096 * mebibyte,
  maxFileSize: 1024 * mebibyte,
  maxMetadataFileSize: 64 * mebibyte,
  maxRatio: 200,
  ratioThreshold: 64 * mebibyte,
};

/** Formats a size for a message: `64 MiB`, `1.5 GiB`, `712 bytes`. */
export function showSize(bytes: number): string {
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  if (bytes < 1024) return `${bytes} bytes`;
  let value = bytes;
  let unit = -1;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${Number(value.toFixed(1))} ${units[unit]}`;
}

/**
 * Counts unpacked content, for one archive or all layers of an image. Every method throws LimitError with the limit
 * and its flag.
 */
export class ArchiveMeter {
  readonly limits: ArchiveLimits;
  #entries = 0;
  #unpacked = 0;

  constructor(limits: ArchiveLimits = defaultArchiveLimits) {
    this.limits = limits;
  }

  countEntry(label: string): void {
    if (++this.#entries <= this.limits.maxEntries) return;
    throw new LimitError(`more than ${this.limits.maxEntries} entries`, {
      subject: label,
      hint: 'raise the limit with limits.maxEntries if you trust the source',
    });
  }

  countUnpacked(label: string, bytes: number): void {
    this.#unpacked += bytes;
    if (this.#unpacked <= this.limits.maxUnpackedSize) return;
    throw new LimitError(`unpacks to more than ${showSize(this.limits.maxUnpackedSize)}`, {
      subject: label,
      hint: 'raise the limit with limits.maxUnpackedSize if you trust the source',
    });
  }

  /** Checks the ratio of one compressed stream by its bytes so far. */
  checkRatio(label: string, compressed: number, unpacked: number): void {
    const { maxRatio, ratioThreshold } = this.limits;
    if (unpacked <= ratioThreshold || unpacked <= compressed * maxRatio) return;
    throw new LimitError(
      `${label}: expands to more than ${maxRatio} times its size ` +
        `(${showSize(unpacked)} from ${showSize(compressed)})`,
      { hint: 'raise the limit with limits.maxRatio if you trust the source' },
    );
  }
}
