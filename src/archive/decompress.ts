import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { type CancelOptions, onAbort } from '../core/concurrency.js';
import { CancelledError, OpmateError, getMessage, systemCode, throwIfCancelled } from '../core/errors.js';
import { ArchiveMeter, type ArchiveLimits } from './limits.js';
import { decompressZstd } from './zstd.js';

export interface DecompressOptions extends CancelOptions {
  /** Name of the stream in messages: `layer sha256:…`. */
  label: string;
  limits?: ArchiveLimits | undefined;
  /** Meter shared with other streams; replaces `limits`. */
  meter?: ArchiveMeter | undefined;
}

/**
 * Returns the decompressed bytes of a stream, whose compression is detected by its first bytes: gzip (several members
 * included), zstd, or none. Always reads `source` to its end, where it may verify its digest, and then destroys it.
 *
 * Throws OpmateError SYNTAX (truncated, damaged or trailing data), UNSUPPORTED (bzip2, xz), LIMIT (total size or
 * ratio), CANCELLED, and what `source` throws, even after damage.
 */
export async function* decompress(source: Readable, options: DecompressOptions): AsyncGenerator<Buffer> {
  const { label, signal } = options;
  const meter = options.meter ?? new ArchiveMeter(options.limits);
  // A destroyed stream may emit errors that no longer matter.
  source.on('error', () => undefined);
  const unwatch = onAbort(signal, () => void source.destroy(new CancelledError()));
  let compressed = 0;
  let unpacked = 0;
  const input = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  try {
    throwIfCancelled(signal);
    const head = await readHead(input);
    const format = detectFormat(head, label);
    const chunks = async function* (): AsyncGenerator<Buffer> {
      let next: IteratorResult<Buffer> = { done: false, value: head };
      for (; next.done !== true; next = await input.next()) {
        compressed += next.value.length;
        yield next.value;
      }
    };
    const output =
      format === 'gzip'
        ? gunzip(chunks(), label)
        : format === 'zstd'
          ? decompressZstd(chunks(), label)
          : chunks();
    for await (const chunk of output) {
      unpacked += chunk.length;
      meter.countUnpacked(label, chunk.length);
      if (format !== 'plain') meter.checkRatio(label, compressed, unpacked);
      yield chunk;
    }
  } catch (error) {
    // The digest of data that is damaged shows whether it arrived so.
    if (error instanceof OpmateError && error.code === 'SYNTAX') while ((await input.next()).done !== true);
    if (signal?.aborted) throw new CancelledError('cancelled', { cause: error });
    throw error;
  } finally {
    unwatch();
    source.destroy();
  }
}

/** Maximum bytes that identify the format. */
const headLength = 10;

async function readHead(input: AsyncIterator<Buffer>): Promise<Buffer> {
  let head: Buffer = Buffer.alloc(0);
  while (head.length < headLength) {
    const next = await input.next();
    if (next.done === true) break;
    head = head.length === 0 ? next.value : Buffer.concat([head, next.value]);
  }
  return head;
}

function detectFormat(head: Buffer, label: string): 'gzip' | 'zstd' | 'plain' {
  const starts = (hex: string): boolean => head.subarray(0, hex.length / 2).toString('hex') === hex;
  if (starts('1f8b')) return 'gzip';
  if (starts('28b52ffd') || /^5[0-9a-f]2a4d18/.test(head.toString('hex', 0, 4))) return 'zstd';
  const other = /^BZh[1-9]1AY&SY/.test(head.toString('latin1'))
    ? 'bzip2'
    : starts('fd377a585a00')
      ? 'xz'
      : undefined;
  if (other === undefined) return 'plain';
  throw new OpmateError('UNSUPPORTED', `compressed with ${other}`, {
    subject: label,
    hint: 'compress it with gzip or zstd',
  });
}

async function* gunzip(chunks: AsyncIterable<Buffer>, label: string): AsyncGenerator<Buffer> {
  const inflater = createGunzip({ chunkSize: 512 * 1024 });
  let wake: () => void = () => undefined;
  inflater.on('drain', () => wake());
  inflater.on('close', () => wake());
  // After the last chunk nothing is read, but trailing data may be invalid.
  inflater.on('error', () => undefined);
  let stopped = false;
  let damage: OpmateError | undefined;
  const feed = async (): Promise<void> => {
    for await (const chunk of chunks) {
      if (stopped) return;
      if (damage !== undefined) continue;
      if (inflater.readableEnded || inflater.destroyed) {
        // Zeros end the data: some writers pad their last block.
        if (chunk.some((byte) => byte !== 0)) damage = damaged(label, 'trailing data');
      } else if (!inflater.write(chunk)) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
    if (damage !== undefined) throw damage;
    inflater.end();
  };
  const failures: unknown[] = [];
  const feeding = feed().catch((error: unknown) => {
    failures.push(error);
    inflater.destroy(error instanceof Error ? error : new Error(getMessage(error)));
  });
  try {
    for await (const chunk of inflater) yield chunk as Buffer;
    await feeding;
  } catch (error) {
    const code = systemCode(error);
    if (failures.length > 0 || code === undefined || !code.startsWith('Z_')) throw failures[0] ?? error;
    damage = damaged(label, code === 'Z_BUF_ERROR' ? 'unexpected end' : getMessage(error), error);
    // The source may fail at its end because of its digest.
    await feeding;
    throw failures[0] ?? damage;
  } finally {
    stopped = true;
    inflater.destroy();
  }
  if (failures.length > 0) throw failures[0];
}

function damaged(label: string, problem: string, cause?: unknown): OpmateError {
  return new OpmateError('SYNTAX', `damaged gzip data: ${problem}`, { subject: label, cause });
}
