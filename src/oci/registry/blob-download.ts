import { addContext } from '../../core/diagnostics-error.js';
import { pipeline, Readable } from 'node:stream';
import { type CancelOptions, sleep } from '../../core/concurrency.js';
import { computeDigest, parseDigest, verifyContent } from '../../core/digest.js';
import {
  DigestMismatchError,
  LimitError,
  OpmateError,
  redactUrls,
  throwIfCancelled,
} from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { MemoryStream } from '../image/read-limited.js';
import type { RegistryRequester } from './registry-request.js';
import { maxBrokenAttempts, pauseBeforeAttempt, retryDamaged } from '../transport/retry-policy.js';
import type { TransportResponse } from '../transport/transport.js';
import { NetworkError } from '../transport/transport-faults.js';
import type { Descriptor } from '../image/types.js';

/** Maximum size of blobs held in memory. */
export const smallBlobBytes = 64 * 1024;
/** Minimum bytes of a useful attempt, unless it completes the blob. */
const usefulBytes = 256 * 1024;

type DownloadOptions = CancelOptions & { logger: Logger };

/**
 * Opens a blob at an endpoint. A broken connection is resumed as long as that makes progress. The digest is verified over
 * all bytes of the stream, so wrong bytes after resuming fail it. Content that is damaged before the first byte is
 * requested again, three times in all.
 */
export async function downloadBlob(
  requester: RegistryRequester,
  descriptor: Descriptor,
  options: DownloadOptions,
): Promise<Readable> {
  return retryDamaged(() => openDownload(requester, descriptor, options), options);
}

async function openDownload(
  requester: RegistryRequester,
  descriptor: Descriptor,
  options: DownloadOptions,
): Promise<Readable> {
  const { digest, size } = descriptor;
  if (size <= smallBlobBytes) return new MemoryStream(await readSmall(requester, descriptor, options));
  const subject = `${requester.name}: blob ${digest}`;
  let response = await requestBlob(requester, descriptor, subject, options);
  const etag = response.headers.get('etag');

  async function* read(): AsyncGenerator<Buffer> {
    let offset = 0;
    let useless = 0;
    /** Bytes of the current response that were yielded before. */
    let skip = 0;
    for (;;) {
      const before = offset;
      let cause: unknown;
      try {
        for await (const chunk of response.body as AsyncIterable<Buffer>) {
          const fresh = skip === 0 ? chunk : chunk.subarray(Math.min(skip, chunk.length));
          skip -= chunk.length - fresh.length;
          if (fresh.length === 0) continue;
          offset += fresh.length;
          yield fresh;
        }
      } catch (error) {
        cause = error;
      }
      throwIfCancelled(options.signal);
      if (offset >= size) return;
      if (cause instanceof NetworkError && !cause.temporary) throw cause;
      useless = offset - before >= usefulBytes ? 0 : useless + 1;
      if (useless >= maxBrokenAttempts) {
        throw new NetworkError(`connection cut after ${offset} of ${size} bytes, ${useless} times`, {
          subject,
          temporary: false,
          cause,
        });
      }
      options.logger.log('debug', `${subject}: cut after ${offset} of ${size} bytes, resuming there`);
      if (useless > 1) await sleep(100 * 2 ** (useless - 2), options.signal);
      ({ response, skip } = await resume(requester, descriptor, offset, etag, subject, options));
    }
  }

  const checked = verifyContent({ digest, size, subject: subject + requester.where });
  // A generator that was never started runs no `finally`.
  pipeline(Readable.from(read(), { objectMode: false }), checked, () => response.body.destroy());
  return checked;
}

async function requestBlob(
  requester: RegistryRequester,
  descriptor: Descriptor,
  subject: string,
  { signal }: CancelOptions,
): Promise<TransportResponse> {
  const { digest, size } = descriptor;
  const response = await requester.send('GET', `blobs/${digest}`, 'pull', { signal });
  if (response.status !== 200)
    throw await missing(await requester.failure(response, subject, 'pull'), descriptor);
  const length = response.headers.get('content-length');
  if (length === null || Number(length) === size || response.headers.get('content-encoding') !== null)
    return response;
  response.discard();
  throw new DigestMismatchError(`expected ${size} bytes, got ${length}${requester.where}`, { subject });
}

/** Reads a small blob whole, which costs less than a verifying stream. Requests it again if the connection breaks. */
async function readSmall(
  requester: RegistryRequester,
  descriptor: Descriptor,
  options: DownloadOptions,
): Promise<Buffer> {
  const { digest, size } = descriptor;
  const subject = `${requester.name}: blob ${digest}`;
  let bytes: Buffer | undefined;
  for (let attempt = 1; bytes === undefined; attempt++) {
    const response = await requestBlob(requester, descriptor, subject, options);
    let cause: unknown;
    try {
      const received = await response.read(size, subject);
      if (received.length === size) bytes = received;
    } catch (error) {
      throwIfCancelled(options.signal);
      if (error instanceof LimitError)
        throw new DigestMismatchError(`expected ${size} bytes, got more`, {
          subject: subject + requester.where,
        });
      if (!(error instanceof NetworkError) || !error.temporary) throw error;
      cause = error;
    }
    if (bytes !== undefined) break;
    if (attempt >= maxBrokenAttempts) {
      const problem = `connection cut before the end of ${size} bytes, ${attempt} times`;
      throw new NetworkError(problem, { subject, temporary: false, cause });
    }
    options.logger.log('debug', `${subject}: cut before the end of ${size} bytes, requesting it again`);
    if (attempt > 1) await pauseBeforeAttempt(attempt, options);
  }
  const actual = computeDigest(bytes, parseDigest(digest).algorithm);
  if (actual === digest) return bytes;
  throw new DigestMismatchError(`content has digest ${actual}`, {
    subject: subject + requester.where,
  });
}

/** Requests the rest of a blob; the first `skip` bytes of the response are known. */
async function resume(
  requester: RegistryRequester,
  descriptor: Descriptor,
  offset: number,
  etag: string | null,
  subject: string,
  options: CancelOptions,
): Promise<{ response: TransportResponse; skip: number }> {
  const path = `blobs/${descriptor.digest}`;
  const strong = etag !== null && /^"[\x21\x23-\x7e]*"$/.test(etag) ? { 'if-range': etag } : undefined;
  const headers = { range: `bytes=${offset}-`, ...strong };
  let response = await requester.send('GET', path, 'pull', { headers, signal: options.signal });
  if (response.status === 206 && isRest(response, offset, descriptor.size, etag))
    return { response, skip: 0 };
  if (response.status === 206 || response.status === 416) {
    response.discard();
    response = await requester.send('GET', path, 'pull', { signal: options.signal });
  }
  if (response.status !== 200) throw await requester.failure(response, subject, 'pull');
  return { response, skip: offset };
}

function isRest(response: TransportResponse, offset: number, size: number, etag: string | null): boolean {
  const now = response.headers.get('etag');
  if (etag !== null && now !== null && now !== etag) return false;
  const range = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(response.headers.get('content-range') ?? '');
  return range !== null && Number(range[1]) === offset && (range[3] === '*' || Number(range[3]) === size);
}

async function missing(error: OpmateError, descriptor: Descriptor): Promise<OpmateError> {
  const foreign = descriptor.urls?.[0];
  if (error.code !== 'NOT_FOUND' || foreign === undefined) return error;
  return addContext(error, {
    newHint: `push the layer to the registry: opmate does not fetch foreign layers from ${redactUrls(JSON.stringify(foreign.slice(0, 200)))}`,
  });
}
