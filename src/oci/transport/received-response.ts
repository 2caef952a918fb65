import { Readable } from 'node:stream';
import { LimitError, type OpmateError } from '../../core/errors.js';
import { readLimited } from '../image/read-limited.js';
import type { ProgressWatch } from './progress-watch.js';

/** Maximum rest of a body that is read to keep the connection. */
const shortBytes = 65_536;

interface ResponseHead {
  status: number;
  headers: { get(name: string): string | null };
  /** URL of the response. */
  url: string;
  /** IP address of the peer; undefined behind a proxy. */
  address: string | undefined;
}

interface ResponseSource {
  source: Readable;
  /** No body follows, whatever the length in the header. */
  isEmpty: boolean;
  watch: ProgressWatch;
  /** Called when nothing more is received. */
  release: () => void;
  /** Returns the error of a body that fails. */
  describe: (received: number, cause: Error) => OpmateError;
}

/**
 * A response with a watched body that fails with descriptive errors. Its stream is created on demand, as it is costly. A
 * class: V8 gives each object literal with a getter a map of its own, which keeps the request until a full collection.
 */
export class ReceivedResponse implements ResponseHead {
  readonly status: number;
  readonly headers: ResponseHead['headers'];
  readonly url: string;
  readonly address: string | undefined;
  readonly #source: ResponseSource;
  #body: Readable | undefined;

  constructor({ status, headers, url, address }: ResponseHead, source: ResponseSource) {
    this.status = status;
    this.headers = headers;
    this.url = url;
    this.address = address;
    this.#source = source;
    // Nothing moves before the body is read.
    source.watch.stream(() => true);
  }

  get body(): Readable {
    return (this.#body ??= openBody(this.#source));
  }

  async read(limit: number, what: string): Promise<Buffer> {
    if (this.#body !== undefined) return readLimited(this.#body, limit, what);
    const { source, watch, release, describe } = this.#source;
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
      throw error instanceof LimitError ? error : describe(size, error as Error);
    } finally {
      release();
    }
    return chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size);
  }

  discard(): void {
    const { source, isEmpty, watch, release } = this.#source;
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
}

/** Returns the body as a plain Readable: a Transform in a pipeline costs half of the throughput. */
function openBody({ source, watch, release, describe }: ResponseSource): Readable {
  let received = 0;
  const opened = new Readable({
    read: () => void source.resume(),
    destroy: (error, done) => {
      release();
      source.destroy();
      done(error && describe(received, error));
    },
  });
  whenEnded(source, (chunk) => {
    received += chunk.length;
    watch.moved(chunk.length);
    if (!opened.push(chunk)) source.pause();
  }).then(
    () => {
      release();
      opened.push(null);
    },
    (error: Error) => opened.destroy(error),
  );
  // The stream keeps an error until it is read.
  opened.on('error', () => undefined);
  watch.stream(() => source.isPaused());
  return opened;
}

/** Resolves at the end of a stream that may have ended or failed already. Throws its error. */
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
