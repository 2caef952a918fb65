import { addContext } from '../../core/diagnostics-error.js';
import { Readable } from 'node:stream';
import { type CancelOptions, onAbort } from '../../core/concurrency.js';
import { isDigest, parseDigest } from '../../core/digest.js';
import { DigestMismatchError, OpmateError, RegistryError, throwIfCancelled } from '../../core/errors.js';
import { smallBlobBytes } from './blob-download.js';
import { MemoryStream, readLimited } from '../image/read-limited.js';
import type { RegistryRequester } from './registry-request.js';
import {
  resolveUploadLocation,
  type TransportRequest,
  type TransportResponse,
} from '../transport/transport.js';
import type { Descriptor } from '../image/types.js';

/** Maximum sessions: an upload that the registry lost is restarted. */
const maxSessions = 3;
/** Time limit for cancelling an upload. */
const cancelTimeoutMs = 5_000;

interface UploadOptions extends CancelOptions {
  /** Called with the bytes read for sending so far, starting at 0 with every attempt. */
  onSent?: ((bytes: number) => void) | undefined;
}

/**
 * Uploads a blob at the origin of the registry only. A failed upload is cancelled. Throws the errors of `open` and its
 * stream unchanged, DigestMismatchError for a wrong number of bytes, and OpmateError UNSAFE, NETWORK, AUTH or REGISTRY.
 */
export async function uploadBlob(
  requester: RegistryRequester,
  descriptor: Descriptor,
  open: () => Promise<Readable> | Readable,
  options: UploadOptions,
): Promise<void> {
  const subject = `${requester.name}: blob ${descriptor.digest}`;
  for (let session = 1; ; session++) {
    const content = new UploadContent(descriptor, open, subject, options);
    let location: string | undefined;
    try {
      const whole = descriptor.size <= smallBlobBytes ? await content.readWhole() : undefined;
      // Content in memory cannot fail.
      const signal = whole === undefined ? content.signal : options.signal;
      const begun = await beginUpload(requester, descriptor, whole, signal);
      if (whole !== undefined && begun.status === 201) {
        checkStored(begun, descriptor, subject);
        return;
      }
      if (begun.status !== 202) throw await requester.failure(begun, subject, 'push');
      begun.discard();
      location = findLocation(begun, subject, requester.url('blobs/uploads/'));
      const body = whole ?? (() => Readable.from(content.read(), { objectMode: false }));
      const request = { body, bodySize: descriptor.size, signal };
      await finishUpload(requester, location, descriptor, subject, request);
      return;
    } catch (error) {
      if (location !== undefined) await cancelUpload(requester, location);
      throwIfCancelled(options.signal);
      if (content.getFailure() !== undefined) throw content.getFailure();
      const isLost = isLostUpload(error) || (content.isRepeated() && isMixedContent(error));
      if (session >= maxSessions || !isLost) throw toUploadError(error, requester.name, subject);
    } finally {
      content.release();
    }
  }
}

/** Registries and routes that do not accept a blob in one request. */
const withoutSingleRequest = new WeakSet<object>();
/** Statuses that do not show whether the registry accepts a blob in one request. */
const generalRefusals = [401, 403, 404, 429];

/** Sends a blob in one request if the registry accepts that, otherwise begins an upload. */
async function beginUpload(
  requester: RegistryRequester,
  { digest }: Descriptor,
  whole: Buffer | undefined,
  signal: AbortSignal | undefined,
): Promise<TransportResponse> {
  if (whole !== undefined && !withoutSingleRequest.has(requester.route)) {
    const path = `blobs/uploads/?digest=${encodeURIComponent(digest)}`;
    const headers = { 'content-type': 'application/octet-stream' };
    const response = await requester.send('POST', path, 'push', { headers, body: whole, signal });
    if (response.status === 201 || generalRefusals.includes(response.status)) return response;
    withoutSingleRequest.add(requester.route);
    if (response.status === 202) return response;
    response.discard();
  }
  return requester.send('POST', 'blobs/uploads/', 'push', { headers: { 'content-length': '0' }, signal });
}

/** Cancels the upload that a refused mount began. */
export async function abandonUpload(requester: RegistryRequester, begun: TransportResponse): Promise<void> {
  begun.discard();
  const location = begun.headers.get('location');
  if (location === null) return;
  await cancelUpload(requester, resolveUploadLocation(requester.url('blobs/uploads/'), location));
}

/** The content of an upload, which keeps the error of its source, as opposed to the registry. */
class UploadContent {
  readonly #size: number;
  readonly #source: () => Promise<Readable> | Readable;
  readonly #subject: string;
  readonly #onSent: UploadOptions['onSent'];
  readonly #controller = new AbortController();
  #failure: unknown;
  #reads = 0;
  /** Aborted if the caller cancels or the content fails. */
  readonly signal = this.#controller.signal;
  /** Stops watching the signal of the caller. */
  readonly release: () => void;

  constructor(
    { size }: Descriptor,
    openSource: () => Promise<Readable> | Readable,
    subject: string,
    { signal, onSent }: Pick<UploadOptions, 'signal' | 'onSent'>,
  ) {
    this.#size = size;
    this.#source = openSource;
    this.#subject = subject;
    this.#onSent = onSent;
    this.release = onAbort(signal, () => this.#controller.abort(signal?.reason));
  }

  async #watch<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.#failure ??= error;
      this.#controller.abort();
      throw error;
    }
  }

  async *#pass(source: Readable): AsyncGenerator<Buffer> {
    const chunks = source[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    let sent = 0;
    try {
      for (;;) {
        // Errors thrown at `yield` are not those of the source.
        const step = await this.#watch(async () => {
          const next = await chunks.next();
          sent += next.done ? 0 : next.value.length;
          if (!next.done) this.#onSent?.(sent);
          if (sent <= this.#size && !(next.done && sent < this.#size)) return next;
          const received = sent > this.#size ? 'more' : String(sent);
          throw new DigestMismatchError(`expected ${this.#size} bytes, got ${received}`, {
            subject: this.#subject,
          });
        });
        if (step.done) return;
        yield step.value;
      }
    } finally {
      source.destroy();
    }
  }

  #openSource(): Promise<Readable> {
    this.#reads++;
    return this.#watch(async () => await this.#source());
  }

  getFailure() {
    return this.#failure;
  }

  /** Reports whether content may have been sent several times; requests from memory are repeated unseen. */
  isRepeated() {
    return this.#reads > 1 || this.#size <= smallBlobBytes;
  }

  async *read(): AsyncGenerator<Buffer> {
    yield* this.#pass(await this.#openSource());
  }

  /** Reads a small blob whole. */
  async readWhole(): Promise<Buffer> {
    const source = await this.#openSource();
    if (!(source instanceof MemoryStream) || source.bytes.length !== this.#size)
      return readLimited(this.#pass(source), this.#size, this.#subject);
    this.#onSent?.(this.#size);
    return source.bytes;
  }
}

async function finishUpload(
  requester: RegistryRequester,
  location: string,
  descriptor: Descriptor,
  subject: string,
  request: Pick<TransportRequest, 'body' | 'bodySize' | 'signal'>,
): Promise<void> {
  // The location is opaque: re-encoding its query could break it.
  const url = `${location}${location.includes('?') ? '&' : '?'}digest=${encodeURIComponent(descriptor.digest)}`;
  const headers = { 'content-type': 'application/octet-stream' };
  const response = await requester.send('PUT', url, 'push', { ...request, headers });
  if (response.status !== 201 && response.status !== 204)
    throw await requester.failure(response, subject, 'push');
  checkStored(response, descriptor, subject);
}

/** Compares the digest that a registry stored with that of the blob. */
function checkStored(response: TransportResponse, { digest }: Descriptor, subject: string): void {
  response.discard();
  const stored = response.headers.get('docker-content-digest');
  if (stored === null || !isDigest(stored) || stored === digest) return;
  if (parseDigest(stored).algorithm === parseDigest(digest).algorithm) {
    throw new DigestMismatchError(`push failed: the registry stored ${stored}`, { subject });
  }
}

function findLocation(response: TransportResponse, subject: string, base: string): string {
  const location = response.headers.get('location');
  if (location !== null) return resolveUploadLocation(base, location);
  throw new OpmateError('REGISTRY', 'push failed: no upload location in the response', { subject });
}

async function cancelUpload(requester: RegistryRequester, location: string): Promise<void> {
  try {
    const signal = AbortSignal.timeout(cancelTimeoutMs);
    (await requester.send('DELETE', location, 'push', { signal })).discard();
  } catch {
    // The registry removes abandoned uploads; the original error matters.
  }
}

/** Reports whether the digest is wrong, as after a registry kept a part of an interrupted attempt. */
function isMixedContent(error: unknown): boolean {
  const codes = ['DIGEST_INVALID', 'SIZE_INVALID'];
  return error instanceof RegistryError && codes.some((code) => error.registryCodes.includes(code));
}

/** Adds the blob to an error about the repository. */
function toUploadError(error: unknown, repository: string, subject: string): unknown {
  if (!(error instanceof RegistryError) || error.subject === subject) return error;
  return addContext(error, { subject: `${subject}: push failed`, replaces: [repository] });
}

/** Reports whether an upload is unknown, as after a repeated request whose first attempt completed it. */
function isLostUpload(error: unknown): boolean {
  if (!(error instanceof RegistryError)) return false;
  const lost = ['BLOB_UPLOAD_UNKNOWN', 'BLOB_UPLOAD_INVALID'];
  return error.status === 416 || lost.some((code) => error.registryCodes.includes(code));
}
