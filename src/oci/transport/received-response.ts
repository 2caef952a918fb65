import { Readable } from 'node:stream';
import { LimitError, type OpmateError } from '../../core/errors.js';
import { readLimited } from '../image/read-limited.js';
import type { ProgressWatch } from './progress-watch.js';

/** A rest of a body that is read rather than paid for with a new connection. */
const shortBytes = 65_536;

interface ResponseHead {
  status: number;
  headers: { get(name: string): string | null };
  url: string;
  address: string | undefined;
}

interface ResponseSource {
  source: Readable;
  /** Whether no body follows, whatever the header says of its length. */
  isEmpty: boolean;
  watch: ProgressWatch;
  /** Called once nothing is to be received any more. */
  release: () => void;
}

/**
 * A response whose body is watched, and fails with errors that say what happened. A stream is made of it only for those
 * who want one: it costs more than most bodies of registries do.
 */
export class ReceivedResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly url: string;
  readonly address: string | undefined;
  readonly #from: ResponseSource;
  readonly #describe: (received: number, cause: Error) => OpmateError;
  #body: Readable | undefined;

  constructor(
    { status, headers, url, address }: ResponseHead,
    from: ResponseSource,
    describe: (received: number, cause: Error) => OpmateError,
  ) {
    this.status = status;
    this.headers = headers;
    this.url = url;
    this.address = address;
    this.#from = from;
    this.#describe = describe;
    // Nothing moves before somebody reads.
    from.watch.stream(() => true);
  }

  get body(): Readable {
    return (this.#body ??= this.#open());
  }

  async read(limit: number, what: string): Promise<Buffer> {
    if (this.#body !== undefined) return readLimited(this.#body, limit, what);
    const { source, watch, release } = this.#from;
    const chunks: Buffer[] = [];
    let size = 0;
    watch.stream(() => false);
    try {
      await whenEnded(source, (chunk) => {
        size += chunk.length;
        watch.moved(chunk.length);
        if (size <= limit) chunks.push(chunk);
        else source.destroy(new LimitError(`${what} is larger than ${limit} bytes`));
      });
    } catch (error) {
      throw error instanceof LimitError ? error : this.#describe(size, error as Error);
    } finally {
      release();
    }
    return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size);
  }

  discard(): void {
    const { source, isEmpty, watch, release } = this.#from;
    const length = Number(this.headers.get('content-length') ?? NaN);
    if (!isEmpty && !(length <= shortBytes)) {
      this.body.destroy();
    } else if (this.#body !== undefined) {
      this.#body.resume();
    } else {
      watch.stream(() => false);
      source.once('end', release).once('close', release);
      source.resume();
    }
  }

  /** A plain Readable, because a Transform in a pipeline costs half of the throughput. */
  #open(): Readable {
    const { source, watch, release } = this.#from;
    let received = 0;
    const body = new Readable({
      read: () => void source.resume(),
      destroy: (error, done) => {
        release();
        source.destroy();
        done(error && this.#describe(received, error));
      },
    });
    whenEnded(source, (chunk) => {
      received += chunk.length;
      watch.moved(chunk.length);
      if (!body.push(chunk)) source.pause();
    }).then(
      () => {
        release();
        body.push(null);
      },
      (error: Error) => body.destroy(error),
    );
    // An error before the reader has attached itself is kept by the stream and met on reading.
    body.on('error', () => undefined);
    watch.stream(() => source.isPaused());
    return body;
  }
}

/** Resolves at the end of a stream that may have ended or failed already. Throws what it fails with. */
function whenEnded(source: Readable, onData: (chunk: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(source.errored ?? new Error('closed early'));
    if (source.readableEnded) return resolve();
    if (source.destroyed) return fail();
    source.on('error', reject);
    source.on('end', resolve);
    source.on('close', () => {
      if (!source.readableEnded) fail();
    });
    source.on('data', onData);
  });
}
