import { LimitError } from '../core/errors.js';

/** Caps on what reading an image or archive may cost. All sizes are bytes. */
export interface ArchiveLimits {
  /** Entries over all layers of an image, directories that names imply included. */
  maxEntries: number;
  /** Files that are kept of them; as many as there are where left out. */
  maxFiles?: number;
  /** Decompressed bytes over all layers of an image, skipped entries included. */
  maxUnpackedSize: number;
  /** One file that is kept; entries that are skipped may be larger. */
  maxFileSize: number;
  /** One file that is read into memory. */
  maxMetadataFileSize: number;
  /** How many times its size a compressed layer may expand to. */
  maxRatio: number;
  /** The ratio counts once a layer has expanded to more than this. */
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

/** A size for a message: `64 MiB`, `1.5 GiB`, `712 bytes`. */
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
 * Counts what has been unpacked, for one archive or all layers of one image together.
 * Every method throws LimitError, which names the cap and the flag that raises it.
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
      hint: 'raise the limit with --max-entries if you trust the source',
    });
  }

  countUnpacked(label: string, bytes: number): void {
    this.#unpacked += bytes;
    if (this.#unpacked <= this.limits.maxUnpackedSize) return;
    throw new LimitError(`unpacks to more than ${showSize(this.limits.maxUnpackedSize)}`, {
      subject: label,
      hint: 'raise the limit with --max-unpacked-size if you trust the source',
    });
  }

  /** Judges one compressed stream by its bytes so far. */
  checkRatio(label: string, compressed: number, unpacked: number): void {
    const { maxRatio, ratioThreshold } = this.limits;
    if (unpacked <= ratioThreshold || unpacked <= compressed * maxRatio) return;
    throw new LimitError(
      `${label}: expands to more than ${maxRatio} times its size ` +
        `(${showSize(unpacked)} from ${showSize(compressed)})`,
      { hint: 'raise the limit with --max-ratio if you trust the source' },
    );
  }
}
