import type { Writable } from 'node:stream';
import { onAbort } from '../core/concurrency.js';
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
 * Buffers data for a stream and waits for slow readers. Throws OutputClosedError if the reader is gone, OpmateError IO if
 * writing fails.
 */
export class Output {
  readonly #stream: Writable;
  readonly #signal: AbortSignal | undefined;
  #pieces: (string | Buffer)[] = [];
  #size = 0;
  #failure: unknown;
  readonly #onError = (error: unknown): void => {
    this.#failure ??= error;
  };

  constructor(stream: Writable, signal?: AbortSignal) {
    this.#stream = stream;
    this.#signal = signal;
    stream.on('error', this.#onError);
  }

  /** Adds text or bytes to the buffer, which is written in large chunks. */
  async write(piece: string | Buffer): Promise<void> {
    this.#pieces.push(piece);
    this.#size += piece.length;
    if (this.#size >= flushSize) await this.#flush();
  }

  /** Writes the rest. The stream stays open. */
  async end(): Promise<void> {
    await this.#flush();
    this.#stream.off('error', this.#onError);
  }

  async #flush(): Promise<void> {
    this.#check();
    if (this.#pieces.length === 0) return;
    const bytes = Buffer.concat(
      this.#pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece)),
    );
    this.#pieces = [];
    this.#size = 0;
    if (!this.#stream.write(bytes)) await drained(this.#stream, this.#signal);
    // A failed write is reported on the next turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    this.#check();
  }

  #check(): void {
    throwIfCancelled(this.#signal);
    if (this.#failure === undefined) {
      // A stream that was closed before takes writes without a word.
      if (this.#stream.destroyed) throw new OutputClosedError(undefined);
      return;
    }
    const code = systemCode(this.#failure);
    if (code === 'EPIPE' || code === 'ERR_STREAM_DESTROYED') throw new OutputClosedError(this.#failure);
    throw new OpmateError('IO', `standard output: ${systemReason(this.#failure)}`, { cause: this.#failure });
  }
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

/** Writes all of `text`. */
export async function writeAll(
  stream: Writable,
  text: string | Iterable<string | Buffer> | AsyncIterable<string | Buffer>,
  signal?: AbortSignal,
): Promise<void> {
  const output = new Output(stream, signal);
  if (typeof text === 'string') await output.write(text);
  else for await (const piece of text) await output.write(piece);
  await output.end();
}
