import type { Writable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { onAbort } from '../core/concurrency.js';
import { printableData } from '../core/printable.js';
import { OpmateError, systemCode, systemReason, throwIfCancelled } from '../core/errors.js';

/** Error of a closed standard output, as of `| head`; ends the command silently. */
export class OutputClosedError extends OpmateError {
  override readonly name: string = 'OutputClosedError';
  constructor(cause: unknown) {
    super('IO', 'standard output was closed', { cause });
  }
}

const flushSize = 512 * 1024;

/**
 * Writes text or pieces in large chunks, and waits for slow readers; `onPiece` is called before each piece and at the
 * end. The stream stays open. Throws OutputClosedError if the reader is gone, OpmateError IO if writing fails.
 */
export async function writeAll(
  stream: Writable,
  text: string | Iterable<string | Buffer> | AsyncIterable<string | Buffer>,
  signal?: AbortSignal,
  onPiece?: () => void,
): Promise<void> {
  let held: Buffer[] = [];
  let size = 0;
  let failure: unknown;
  const onError = (error: unknown): void => {
    failure ??= error;
  };
  const check = (): void => {
    throwIfCancelled(signal);
    const code = systemCode(failure);
    // A stream that was closed before takes writes without a word.
    const isClosed = failure === undefined && stream.destroyed;
    if (isClosed || code === 'EPIPE' || code === 'ERR_STREAM_DESTROYED') throw new OutputClosedError(failure);
    if (failure !== undefined) {
      throw new OpmateError('IO', `standard output: ${systemReason(failure)}`, { cause: failure });
    }
  };
  const flush = async (): Promise<void> => {
    check();
    if (held.length === 0) return;
    const bytes = Buffer.concat(held);
    held = [];
    size = 0;
    if (!stream.write(bytes)) await drained(stream, signal);
    // A failed write is reported on the next turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    check();
  };
  // JSON and YAML are written as they are, except to a terminal, which obeys some of their characters.
  const toShown = (stream as Partial<NodeJS.WriteStream>).isTTY === true ? createTerminalFilter() : undefined;
  stream.on('error', onError);
  for await (const piece of typeof text === 'string' ? [text] : text) {
    onPiece?.();
    const shown = toShown === undefined ? piece : toShown(piece);
    held.push(typeof shown === 'string' ? Buffer.from(shown) : shown);
    size += piece.length;
    if (size >= flushSize) await flush();
  }
  onPiece?.();
  await flush();
  stream.off('error', onError);
}

/** Returns a filter of pieces of text, of which a character may be split between two. */
function createTerminalFilter(): (piece: string | Buffer) => string {
  const decoder = new StringDecoder('utf8');
  return (piece) => printableData(typeof piece === 'string' ? piece : decoder.write(piece));
}

/** Resolves when a stream drains or closes, or `signal` fires. */
function drained(stream: Writable, signal: AbortSignal | undefined): Promise<void> {
  const events = ['drain', 'close', 'error'] as const;
  return new Promise((resolve) => {
    let release = (): void => undefined;
    const done = (): void => {
      for (const event of events) stream.off(event, done);
      release();
      resolve();
    };
    for (const event of events) stream.on(event, done);
    release = onAbort(signal, done);
  });
}
