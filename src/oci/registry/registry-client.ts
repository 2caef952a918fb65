import type { Readable } from 'node:stream';
import type { CancelOptions } from '../../core/concurrency.js';
import { computeDigest, isDigest, parseDigest } from '../../core/digest.js';
import {
  DigestMismatchError,
  LimitError,
  OpmateError,
  RegistryError,
  throwIfCancelled,
  ifFound,
} from '../../core/errors.js';
import { quoteShort } from '../../document/field.js';
import { isJsonObject } from '../../document/json.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { sortedByBytes } from '../../core/order.js';
import { type BlobCache, withBlobCache } from './blob-cache.js';
import { downloadBlob } from './blob-download.js';
import { abandonUpload, uploadBlob } from './blob-upload.js';
import type { Connection } from './connection.js';
import { parseManifest, readManifestFacts } from '../image/manifest.js';
import { getSubject } from '../image/platform.js';
import { getReferrer } from '../layout/layout-content.js';
import { readReferrers } from './referrers-api.js';
import { ReferrersTags, referrersTag } from './referrers-tag.js';
import { type PageOptions, readPages } from './list-pages.js';
import { isTag } from './registry-names.js';
import { type Access, RegistryRequester, canTryNext } from './registry-request.js';
import { type ManifestContent, type WritableRepository } from './repository.js';
import { maxContentAttempts, pauseBeforeAttempt } from '../transport/retry-policy.js';
import { type TransportResponse } from '../transport/transport.js';
import { NetworkError } from '../transport/transport-faults.js';
import { type Descriptor, maxManifestBytes, manifestMediaTypes, uniqueByDigest } from '../image/types.js';

const tagsPerPage = 1_000;

/** A repository in a registry. */
export interface RegistryRepository extends WritableRepository {
  /** `host[:port]` as the user named it. */
  readonly registry: string;
  /** `ns/name` */
  readonly repository: string;
}

export interface RegistryRepositoryOptions {
  connection: Connection;
  registry: string;
  repository: string;
  logger?: Logger | undefined;
  /** Cache of content by digest. */
  cache?: BlobCache | undefined;
  /** Reads from the registry itself, as before writing or deleting. */
  withoutMirrors?: boolean | undefined;
}

/**
 * Returns a repository of a registry with the distribution API 1.1. Reads try the mirrors of the registry in order, then
 * the registry, as long as content is missing, access is refused or the connection fails. Writes use the registry itself.
 * No request is sent before the first call.
 */
export function createRegistryRepository(options: RegistryRepositoryOptions): RegistryRepository {
  const { connection, registry, repository, logger = silentLogger } = options;
  const name = `${registry}/${repository}`;
  const referrersTags = new ReferrersTags(
    (requester, reference, readOptions) => ifFound(readManifest(requester, reference, readOptions)),
    logger,
  );
  const requesters = new Map<string, readonly RegistryRequester[]>();

  /** Returns the endpoints for reads in order, the registry itself last. */
  async function getReaders(
    byDigest: boolean,
    { signal }: CancelOptions,
    withoutMirrors = options.withoutMirrors === true,
  ): Promise<readonly RegistryRequester[]> {
    const key = `${byDigest} ${withoutMirrors}`;
    const choice = { byDigest, withoutMirrors, signal };
    const readers =
      requesters.get(key) ??
      (await connection.endpoints(registry, repository, choice)).map(
        (each) => new RegistryRequester(each, name),
      );
    requesters.set(key, readers);
    return readers;
  }

  /** Returns the registry itself. */
  async function getTarget(options: CancelOptions): Promise<RegistryRequester> {
    return (await getReaders(true, options, true)).at(-1) as RegistryRequester;
  }

  /** Reads a manifest; errors about the registry or repository name the image. */
  async function readNamed<T>(
    reference: string,
    options: CancelOptions,
    work: (requester: RegistryRequester) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const subject = getSubject(name, reference);
    return read(isDigest(reference), options, (requester) =>
      work(requester).catch((error: unknown) => {
        throw requester.nameImage(error, subject);
      }),
    );
  }

  /** Returns the result of the first endpoint that has one; otherwise undefined or the error of the last. */
  async function read<T>(
    byDigest: boolean,
    options: CancelOptions,
    work: (requester: RegistryRequester) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const readers = await getReaders(byDigest, options);
    for (const [i, requester] of readers.entries()) {
      throwIfCancelled(options.signal);
      const isLast = i === readers.length - 1;
      try {
        const result = await work(requester);
        if (result !== undefined || isLast) return result;
      } catch (error) {
        if (isLast || !canTryNext(error)) throw error;
        logger.log('debug', `${(error as Error).message}; trying the next endpoint`);
      }
    }
    return undefined;
  }

  const client: RegistryRepository = {
    name,
    registry,
    repository,
    async getManifest(reference, options = {}) {
      checkReference(name, reference);
      const content = await readNamed(reference, options, (requester) =>
        readManifest(requester, reference, options),
      );
      return content as ManifestContent;
    },
    async headManifest(reference, options = {}) {
      checkReference(name, reference);
      return readNamed(reference, options, (requester) => headManifestAt(requester, reference, options));
    },
    async openBlob(descriptor, options = {}) {
      parseDigest(descriptor.digest);
      const open = (requester: RegistryRequester) =>
        downloadBlob(requester, descriptor, { ...options, logger });
      return (await read(true, options, open)) as Readable;
    },
    async hasBlob(descriptor, options = {}) {
      parseDigest(descriptor.digest);
      const exists = await read(true, options, async (requester) =>
        (await isBlobAt(requester, descriptor, 'pull', options)) ? true : undefined,
      );
      return exists === true;
    },
    async listTags(options = {}) {
      const tags = await read(false, options, (requester) => readTags(requester, options));
      return sortedByBytes(tags ?? []);
    },
    async findTags(options = {}) {
      const [only, ...others] = await getReaders(false, options);
      if (only === undefined || others.length > 0) return undefined;
      try {
        const tags = await readTags(only, { ...options, maxPages: 1 });
        // A registry that truncates lists without a link does so at the requested number.
        return tags.length < tagsPerPage ? new Set(tags) : undefined;
      } catch (error) {
        // Only with this code the repository is missing, and not the list.
        if (error instanceof RegistryError && error.registryCodes.includes('NAME_UNKNOWN')) return new Set();
        throwIfCancelled(options.signal);
        if (!(error instanceof OpmateError) || error.code === 'NETWORK') throw error;
        logger.log('debug', `${error.message}; checking each tag`);
        return undefined;
      }
    },
    async listReferrers(digest, options = {}) {
      parseDigest(digest);
      const { artifactType, tags } = options;
      const referrers = await read(true, options, async (requester) => {
        const listed = await readReferrers(requester, digest, options);
        if (listed !== undefined || tags?.has(referrersTag(digest)) === false) return listed ?? [];
        return referrersTags.list(requester, digest, options);
      });
      const all = uniqueByDigest(referrers ?? []);
      return artifactType === undefined ? all : all.filter((entry) => entry.artifactType === artifactType);
    },
    async putBlob(descriptor, open, options = {}) {
      parseDigest(descriptor.digest);
      throwIfCancelled(options.signal);
      const requester = await getTarget(options);
      if (!options.isAbsent && (await isBlobAt(requester, descriptor, 'push', options))) return;
      await uploadBlob(requester, descriptor, open, options);
    },
    async mountBlob(descriptor, fromRepository, options = {}) {
      parseDigest(descriptor.digest);
      const requester = await getTarget(options);
      const query = `mount=${encodeURIComponent(descriptor.digest)}&from=${encodeURIComponent(fromRepository)}`;
      const response = await requester.send('POST', `blobs/uploads/?${query}`, 'push', {
        headers: { 'content-length': '0' },
        signal: options.signal,
      });
      if (response.status === 201) {
        response.discard();
        return true;
      }
      if (response.status !== 202) {
        throw await requester.failure(response, `${name}: blob ${descriptor.digest}`, 'push');
      }
      await abandonUpload(requester, response);
      return false;
    },
    async putManifest(reference, bytes, mediaType, options = {}) {
      checkReference(name, reference);
      const subject = getSubject(name, reference);
      const digest = computeDigest(bytes, isDigest(reference) ? parseDigest(reference).algorithm : 'sha256');
      if (isDigest(reference) && digest !== reference) {
        throw new DigestMismatchError(`content has digest ${digest}`, { subject });
      }
      parseManifest(bytes, { subject, mediaType });
      const requester = await getTarget(options);
      const hasApi = async (target: string) =>
        (await readReferrers(requester, target, options)) !== undefined;
      const store = async () => {
        const response = await requester.send('PUT', `manifests/${reference}`, 'push', {
          headers: { 'content-type': mediaType },
          body: bytes,
          signal: options.signal,
        });
        if (response.status !== 201) throw await requester.failure(response, subject, 'push');
        response.discard();
        return response;
      };
      const reply = await referrersTags.replace(requester, reference, digest, { ...options, hasApi }, store);
      const stored = reply.headers.get('docker-content-digest');
      if (
        stored !== null &&
        isDigest(stored) &&
        computeDigest(bytes, parseDigest(stored).algorithm) !== stored
      ) {
        throw new DigestMismatchError(`push failed: the registry stored ${stored} in place of ${digest}`, {
          subject,
        });
      }
      // A tag is the last manifest of an image, and proves the others.
      if (!isDigest(reference) || stored !== digest)
        await requireStored(requester, reference, digest, options);
      const descriptor = { mediaType, digest, size: bytes.length };
      const facts = readManifestFacts(bytes, subject);
      if (facts.subject !== undefined && reply.headers.get('oci-subject') === null)
        await referrersTags.add(requester, facts.subject, getReferrer(descriptor, facts), options);
      return descriptor;
    },
    async deleteManifest(reference, options = {}) {
      checkReference(name, reference);
      const subject = getSubject(name, reference);
      const requester = await getTarget(options);
      const target = isDigest(reference) ? await findSubject(requester, reference, options) : undefined;
      const response = await requester.send('DELETE', `manifests/${reference}`, 'delete', {
        signal: options.signal,
      });
      if (![200, 202, 204].includes(response.status))
        throw await requester.failure(response, subject, 'delete');
      response.discard();
      if (target === undefined || (await readReferrers(requester, target, options)) !== undefined) return;
      await referrersTags.remove(requester, target, reference, options);
    },
  };
  return options.cache ? withBlobCache(client, options.cache) : client;
}

/** Checks a reference before it becomes part of a URL. */
function checkReference(name: string, reference: string): void {
  if (isDigest(reference) || isTag(reference)) return;
  throw new OpmateError('INVALID', `expected a tag or digest, got ${quoteShort(reference)}`, {
    subject: name,
  });
}

/** Reads a manifest. One that is cut off, or does not match the requested or announced digest, is read again. */
async function readManifest(
  requester: RegistryRequester,
  reference: string,
  options: CancelOptions,
): Promise<ManifestContent> {
  const subject = getSubject(requester.name, reference);
  for (let attempt = 1; ; attempt++) {
    const response = await requester.send('GET', `manifests/${reference}`, 'pull', {
      headers: { accept: manifestMediaTypes.join(', ') },
      signal: options.signal,
    });
    if (response.status !== 200) throw await requester.failure(response, subject, 'pull');
    let isProven = false;
    try {
      const bytes = await response.read(maxManifestBytes, `${subject}: manifest`);
      const digest = checkDigest(bytes, reference, response, subject, requester.where);
      isProven = isDigest(reference) || response.headers.get('docker-content-digest') !== null;
      const { mediaType } = parseManifest(bytes, {
        subject,
        mediaType: response.headers.get('content-type') ?? undefined,
      });
      return { descriptor: { mediaType, digest, size: bytes.length }, bytes };
    } catch (error) {
      throwIfCancelled(options.signal);
      const isLasting = error instanceof LimitError || (error instanceof NetworkError && !error.temporary);
      if (attempt >= maxContentAttempts || isLasting || isProven) throw error;
      await pauseBeforeAttempt(attempt + 1, options);
    }
  }
}

/** Returns the digest of content, which must be the requested one, or that announced for a tag. */
function checkDigest(
  bytes: Buffer,
  reference: string,
  response: TransportResponse,
  subject: string,
  where: string,
): string {
  const announced = response.headers.get('docker-content-digest');
  const expected = isDigest(reference) ? reference : announced;
  if (expected === null) return computeDigest(bytes);
  const actual = computeDigest(bytes, isDigest(expected) ? parseDigest(expected).algorithm : 'sha256');
  if (actual === expected) return actual;
  const detail = isDigest(reference)
    ? ''
    : `, the registry announced ${JSON.stringify(expected.slice(0, 140))}`;
  throw new DigestMismatchError(`content has digest ${actual}${detail}${where}`, { subject });
}

/** Returns the descriptor of a manifest at one endpoint; undefined if missing. */
async function headManifestAt(
  requester: RegistryRequester,
  reference: string,
  options: CancelOptions,
): Promise<Descriptor | undefined> {
  const response = await requester.send('HEAD', `manifests/${reference}`, 'pull', {
    headers: { accept: manifestMediaTypes.join(', ') },
    signal: options.signal,
  });
  response.discard();
  if (response.status === 404) return undefined;
  const described = response.status === 200 ? describeHead(response, reference) : undefined;
  // GET has what HEAD lacks, error details included.
  return described ?? (await ifFound(readManifest(requester, reference, options)))?.descriptor;
}

/**
 * Throws RegistryError if a registry that accepted a manifest does not have it, and DigestMismatchError if it has another;
 * one that may not be read is assumed to be stored.
 */
async function requireStored(
  requester: RegistryRequester,
  reference: string,
  digest: string,
  options: CancelOptions,
): Promise<void> {
  const subject = getSubject(requester.name, reference);
  for (let attempt = 1; ; attempt++) {
    try {
      const found = await headManifestAt(requester, reference, options);
      if (found?.digest === digest) return;
      if (found !== undefined && attempt >= maxContentAttempts)
        throw new DigestMismatchError(`push failed: the registry has ${found.digest} in place of ${digest}`, {
          subject,
        });
    } catch (error) {
      if (error instanceof OpmateError && error.code === 'AUTH') return;
      throw error;
    }
    if (attempt >= maxContentAttempts)
      throw new RegistryError('push failed: the registry accepted the manifest, but does not have it', {
        subject,
        status: 404,
        code: 'REGISTRY',
        hint: 'check the storage of the registry, and its proxies',
      });
    await pauseBeforeAttempt(attempt + 1, options);
  }
}

function describeHead(response: TransportResponse, reference: string): Descriptor | undefined {
  const digest = isDigest(reference) ? reference : response.headers.get('docker-content-digest');
  const mediaType = response.headers.get('content-type')?.split(';')[0]?.trim() ?? '';
  const length = response.headers.get('content-length');
  if (digest === null || !isDigest(digest) || length === null || !/^\d{1,10}$/.test(length)) return undefined;
  return manifestMediaTypes.includes(mediaType) ? { mediaType, digest, size: Number(length) } : undefined;
}

async function isBlobAt(
  requester: RegistryRequester,
  { digest, size }: Descriptor,
  access: Access,
  options: CancelOptions,
): Promise<boolean> {
  const response = await requester.send('HEAD', `blobs/${digest}`, access, { signal: options.signal });
  if ([405, 501].includes(response.status)) {
    response.discard();
    return isReadableAt(requester, digest, size, access, options);
  }
  // Storage behind a registry may refuse HEAD; the upload then reports missing permissions.
  if (access === 'pull' && response.status !== 200 && response.status !== 404) {
    throw await requester.failure(response, `${requester.name}: blob ${digest}`, access);
  }
  response.discard();
  const length = response.headers.get('content-length');
  return response.status === 200 && (length === null || Number(length) === size);
}

/** Reports whether a registry that refuses HEAD has a blob, by a request for its first byte. */
async function isReadableAt(
  requester: RegistryRequester,
  digest: string,
  size: number,
  access: Access,
  options: CancelOptions,
): Promise<boolean> {
  const response = await requester.send('GET', `blobs/${digest}`, access, {
    headers: { range: 'bytes=0-0' },
    signal: options.signal,
  });
  const { status, headers } = response;
  // An empty blob has no first byte.
  if (access === 'pull' && ![200, 206, 404, 416].includes(status))
    throw await requester.failure(response, `${requester.name}: blob ${digest}`, access);
  response.discard();
  const range = /\/(\d+)$/.exec(headers.get('content-range') ?? '')?.[1];
  const length = status === 200 ? headers.get('content-length') : range;
  const hasSize = length === null || length === undefined || Number(length) === size;
  return (status === 200 || status === 206 || (status === 416 && size === 0)) && hasSize;
}

/** Returns the digest of the `subject` of a manifest; undefined if it has none or is unreadable. */
async function findSubject(
  requester: RegistryRequester,
  digest: string,
  options: CancelOptions,
): Promise<string | undefined> {
  try {
    const { bytes } = await readManifest(requester, digest, options);
    return readManifestFacts(bytes, getSubject(requester.name, digest)).subject;
  } catch (error) {
    // An unreadable manifest can still be deleted.
    if (error instanceof OpmateError && error.code !== 'CANCELLED') return undefined;
    throw error;
  }
}

/** Returns the tags of a repository in the order of their list. */
async function readTags(requester: RegistryRequester, options: PageOptions): Promise<string[]> {
  const tags = new Set<string>();
  const subject = `${requester.name}: tags`;
  for await (const page of readPages(requester, `tags/list?n=${tagsPerPage}`, subject, options)) {
    if (page.status !== 200) throw await requester.failure(page.response, subject, 'pull');
    const list = isJsonObject(page.document) ? (page.document.tags ?? []) : undefined;
    if (!Array.isArray(list) || !list.every((tag) => typeof tag === 'string')) {
      throw new OpmateError('REGISTRY', 'response is not a list of tags', { subject });
    }
    for (const tag of list as string[]) tags.add(tag);
  }
  return [...tags];
}
