import type { Readable } from 'node:stream';
import type { CancelOptions } from '../../core/concurrency.js';
import { computeDigest, isDigest, parseDigest } from '../../core/digest.js';
import {
  DigestMismatchError,
  LimitError,
  OpmateError,
  RegistryError,
  throwIfCancelled,
} from '../../core/errors.js';
import { isJsonObject } from '../../document/json.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { sortedByBytes } from '../../core/order.js';
import { type BlobCache, withBlobCache } from './blob-cache.js';
import { downloadBlob } from './blob-download.js';
import { abandonUpload, type OpenContent, uploadBlob } from './blob-upload.js';
import type { Connection } from './connection.js';
import { parseManifest } from '../image/manifest.js';
import { getSubject } from '../image/platform.js';
import { ReferrersTags, getReferrer, referrersTag, subjectDigest } from './referrers-tag.js';
import { type PageOptions, readPages } from './list-pages.js';
import { type Access, mayBeElsewhere, RegistryRequester } from './registry-request.js';
import type { ManifestContent, PutBlobOptions, ReferrersOptions, WritableRepository } from './repository.js';
import { maxContentAttempts, pauseBeforeAttempt } from '../transport/retry-policy.js';
import { type TransportResponse } from '../transport/transport.js';
import { NetworkError } from '../transport/transport-faults.js';
import { type Descriptor, mediaTypes, maxManifestBytes, manifestMediaTypes } from '../image/types.js';

/** Tags that a page of their list is asked for. */
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
  /** Holds what is read by digest. */
  cache?: BlobCache | undefined;
  /** Blobs larger than this are pushed in chunks of it; in one request when left out. */
  chunkBytes?: number | undefined;
  /** Reads ask the registry itself, too: what is there decides what is written or deleted there. */
  withoutMirrors?: boolean | undefined;
}

/**
 * A repository over the distribution API 1.1. Reads ask the registry's mirrors in order and then itself,
 * and go on only where content is not found, access is refused or nothing answers; writes go to the registry
 * itself. Nothing is sent before the first call.
 */
export function createRegistryRepository(options: RegistryRepositoryOptions): RegistryRepository {
  const repository = new RegistryApiRepository(options);
  return options.cache ? withBlobCache(repository, options.cache) : repository;
}

class RegistryApiRepository implements RegistryRepository {
  readonly name: string;
  readonly registry: string;
  readonly repository: string;
  readonly #connection: Connection;
  readonly #logger: Logger;
  readonly #chunkBytes: number | undefined;
  readonly #withoutMirrors: boolean;
  readonly #referrersTags: ReferrersTags;
  /** The endpoint that is written to, once it has been looked up. */
  #own: RegistryRequester | undefined;
  /** The endpoints that are read from, by whether that is by digest. */
  readonly #known = new Map<boolean, readonly RegistryRequester[]>();

  constructor(options: RegistryRepositoryOptions) {
    const { connection, registry, repository, logger, chunkBytes } = options;
    this.name = `${registry}/${repository}`;
    this.registry = registry;
    this.repository = repository;
    this.#connection = connection;
    this.#logger = logger ?? silentLogger;
    this.#chunkBytes = chunkBytes;
    this.#withoutMirrors = options.withoutMirrors === true;
    this.#referrersTags = new ReferrersTags(
      (requester, reference, how) => unlessNotFound(readManifest(requester, reference, how)),
      this.#logger,
    );
  }

  async getManifest(reference: string, options: CancelOptions = {}): Promise<ManifestContent> {
    checkReference(this.name, reference);
    const content = await this.#readNamed(reference, options, (requester) =>
      readManifest(requester, reference, options),
    );
    return content as ManifestContent;
  }

  async headManifest(reference: string, options: CancelOptions = {}): Promise<Descriptor | undefined> {
    checkReference(this.name, reference);
    return this.#readNamed(reference, options, async (requester) => {
      const response = await requester.send('HEAD', `manifests/${reference}`, 'pull', {
        headers: { accept: manifestMediaTypes.join(', ') },
        signal: options.signal,
      });
      response.discard();
      if (response.status === 404) return undefined;
      const described = response.status === 200 ? describeHead(response, reference) : undefined;
      // What HEAD does not tell, or why it fails, GET does.
      return described ?? (await unlessNotFound(readManifest(requester, reference, options)))?.descriptor;
    });
  }

  async openBlob(descriptor: Descriptor, options: CancelOptions = {}): Promise<Readable> {
    parseDigest(descriptor.digest);
    const open = (requester: RegistryRequester) =>
      downloadBlob(requester, descriptor, { ...options, logger: this.#logger });
    return (await this.#read(true, options, open)) as Readable;
  }

  async hasBlob(descriptor: Descriptor, options: CancelOptions = {}): Promise<boolean> {
    parseDigest(descriptor.digest);
    const exists = await this.#read(true, options, async (requester) =>
      (await isBlobAt(requester, descriptor, 'pull', options)) ? true : undefined,
    );
    return exists === true;
  }

  async listTags(options: CancelOptions = {}): Promise<string[]> {
    const tags = await this.#read(false, options, (requester) => readTags(requester, options));
    return sortedByBytes(tags ?? []);
  }

  async findTags(options: CancelOptions = {}): Promise<ReadonlySet<string> | undefined> {
    const choice = { withoutMirrors: this.#withoutMirrors, signal: options.signal };
    const [own, ...others] = await this.#connection.endpoints(this.registry, this.repository, choice);
    if (own === undefined || others.length > 0) return undefined;
    try {
      const tags = await readTags(new RegistryRequester(own, this.name), { ...options, maxPages: 1 });
      // A registry that cuts its lists off without a link to the rest does so at the number that was asked for.
      return tags.length < tagsPerPage ? new Set(tags) : undefined;
    } catch (error) {
      // Only this code says that it is the repository that is missing, and not the list.
      if (error instanceof RegistryError && error.registryCodes.includes('NAME_UNKNOWN')) return new Set();
      throwIfCancelled(options.signal);
      if (!(error instanceof OpmateError) || error.code === 'NETWORK') throw error;
      this.#logger.log('debug', `${error.message}; asking for each tag`);
      return undefined;
    }
  }

  async listReferrers(digest: string, options: ReferrersOptions = {}): Promise<Descriptor[]> {
    parseDigest(digest);
    const { artifactType, tags } = options;
    const referrers = await this.#read(true, options, async (requester) => {
      const listed = await readReferrers(requester, digest, options);
      if (listed !== undefined || tags?.has(referrersTag(digest)) === false) return listed ?? [];
      return this.#referrersTags.list(requester, digest, options);
    });
    const all = [...new Map(referrers?.map((entry) => [entry.digest, entry])).values()];
    return artifactType === undefined ? all : all.filter((entry) => entry.artifactType === artifactType);
  }

  async putBlob(descriptor: Descriptor, open: OpenContent, options: PutBlobOptions = {}): Promise<void> {
    parseDigest(descriptor.digest);
    throwIfCancelled(options.signal);
    const requester = await this.#target(options);
    if (!options.isAbsent && (await isBlobAt(requester, descriptor, 'push', options))) return;
    await uploadBlob(requester, descriptor, open, { ...options, chunkBytes: this.#chunkBytes });
  }

  async mountBlob(
    descriptor: Descriptor,
    fromRepository: string,
    options: CancelOptions = {},
  ): Promise<boolean> {
    parseDigest(descriptor.digest);
    const requester = await this.#target(options);
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
      throw await requester.failure(response, `${this.name}: blob ${descriptor.digest}`, 'push');
    }
    await abandonUpload(requester, response);
    return false;
  }

  async putManifest(
    reference: string,
    bytes: Buffer,
    mediaType: string,
    options: CancelOptions = {},
  ): Promise<Descriptor> {
    checkReference(this.name, reference);
    const subject = getSubject(this.name, reference);
    const digest = computeDigest(bytes, isDigest(reference) ? parseDigest(reference).algorithm : 'sha256');
    if (isDigest(reference) && digest !== reference) {
      throw new DigestMismatchError(`content has digest ${digest}`, { subject });
    }
    const parsed = parseManifest(bytes, { subject, mediaType });
    const requester = await this.#target(options);
    const hasApi = async (of: string) => (await readReferrers(requester, of, options)) !== undefined;
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
    const reply = await this.#referrersTags.replace(
      requester,
      reference,
      digest,
      { ...options, hasApi },
      store,
    );
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
    const descriptor = { mediaType, digest, size: bytes.length };
    const target = subjectDigest(parsed);
    if (target !== undefined && reply.headers.get('oci-subject') === null)
      await this.#referrersTags.add(requester, target, getReferrer(descriptor, parsed), options);
    return descriptor;
  }

  async deleteManifest(reference: string, options: CancelOptions = {}): Promise<void> {
    checkReference(this.name, reference);
    const subject = getSubject(this.name, reference);
    const requester = await this.#target(options);
    const target = isDigest(reference) ? await subjectAt(requester, reference, options) : undefined;
    const response = await requester.send('DELETE', `manifests/${reference}`, 'delete', {
      signal: options.signal,
    });
    if (![200, 202, 204].includes(response.status))
      throw await requester.failure(response, subject, 'delete');
    response.discard();
    if (target === undefined || (await readReferrers(requester, target, options)) !== undefined) return;
    await this.#referrersTags.remove(requester, target, reference, options);
  }

  async #target(options: CancelOptions): Promise<RegistryRequester> {
    if (this.#own !== undefined) return this.#own;
    const { signal } = options;
    const [own] = await this.#connection.endpoints(this.registry, this.repository, {
      withoutMirrors: true,
      signal,
    });
    if (own === undefined)
      throw new OpmateError('INTERNAL', 'no endpoint to write to', { subject: this.name });
    return (this.#own = new RegistryRequester(own, this.name));
  }

  /** Where is read from, in order. */
  async #readers(byDigest: boolean, { signal }: CancelOptions): Promise<readonly RegistryRequester[]> {
    const known = this.#known.get(byDigest);
    if (known !== undefined) return known;
    const choice = { byDigest, withoutMirrors: this.#withoutMirrors, signal };
    const endpoints = await this.#connection.endpoints(this.registry, this.repository, choice);
    const readers = endpoints.map((endpoint) => new RegistryRequester(endpoint, this.name));
    this.#known.set(byDigest, readers);
    return readers;
  }

  /** Reads a manifest; an error about the whole registry or repository names the image that was to be read. */
  async #readNamed<T>(
    reference: string,
    options: CancelOptions,
    work: (requester: RegistryRequester) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const subject = getSubject(this.name, reference);
    return this.#read(isDigest(reference), options, (requester) =>
      work(requester).catch((error: unknown) => {
        throw requester.nameImage(error, subject);
      }),
    );
  }

  /** The first endpoint's result; undefined, or the last one's failure, when none has one. */
  async #read<T>(
    byDigest: boolean,
    options: CancelOptions,
    work: (requester: RegistryRequester) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const places = await this.#readers(byDigest, options);
    for (const [i, place] of places.entries()) {
      throwIfCancelled(options.signal);
      const isLast = i === places.length - 1;
      try {
        const result = await work(place);
        if (result !== undefined || isLast) return result;
      } catch (error) {
        if (isLast || !mayBeElsewhere(error)) throw error;
        this.#logger.log('debug', `${(error as Error).message}; asking the next`);
      }
    }
    return undefined;
  }
}

/** Refuses what must not become part of a URL. Distribution specification, "Pulling manifests". */
function checkReference(name: string, reference: string): void {
  if (isDigest(reference) || /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/.test(reference)) return;
  throw new OpmateError('INVALID', `${JSON.stringify(reference.slice(0, 200))}: neither a tag nor a digest`, {
    subject: name,
  });
}

async function unlessNotFound<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof OpmateError && error.code === 'NOT_FOUND') return undefined;
    throw error;
  }
}

/**
 * Reads a manifest; what is not there is an error in the registry's own words. One that breaks off, or is another
 * than was asked for or announced, is read again.
 */
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

/** The digest that was asked for, or for a tag the one that the registry announces; it must be the content's. */
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
  // Storage behind a registry may refuse HEAD; an upload finds out whether it may be.
  if (access === 'pull' && response.status !== 200 && response.status !== 404) {
    throw await requester.failure(response, `${requester.name}: blob ${digest}`, access);
  }
  response.discard();
  const length = response.headers.get('content-length');
  return response.status === 200 && (length === null || Number(length) === size);
}

/** Digest of the `subject` of a manifest that is there, if it has one. */
async function subjectAt(
  requester: RegistryRequester,
  digest: string,
  options: CancelOptions,
): Promise<string | undefined> {
  try {
    const { bytes } = await readManifest(requester, digest, options);
    return subjectDigest(parseManifest(bytes, { subject: getSubject(requester.name, digest) }));
  } catch (error) {
    // What cannot be read can still be deleted.
    if (error instanceof OpmateError && error.code !== 'CANCELLED') return undefined;
    throw error;
  }
}

/** The tags of a repository in the order of their list. */
async function readTags(requester: RegistryRequester, options: PageOptions): Promise<string[]> {
  const digests = new Set<string>();
  for await (const page of readPages(
    requester,
    `tags/list?n=${tagsPerPage}`,
    `${requester.name}: tags`,
    options,
  )) {
    if (page.status !== 200) throw await requester.failure(page.response, `${requester.name}: tags`, 'pull');
    const list = isJsonObject(page.document) ? (page.document.tags ?? []) : undefined;
    if (!Array.isArray(list) || !list.every((tag) => typeof tag === 'string')) {
      throw new OpmateError('REGISTRY', 'tags: response is not a list of tags', { subject: requester.name });
    }
    for (const tag of list as string[]) digests.add(tag);
  }
  return [...digests];
}

/** Whether repositories have the referrers API, by their registries and how these are reached. */
const referrersApis = new WeakMap<object, Map<string, Promise<boolean>>>();

/** What the referrers API says, or undefined if missing; a repository without it is asked once. */
async function readReferrers(
  requester: RegistryRequester,
  digest: string,
  options: ReferrersOptions,
): Promise<Descriptor[] | undefined> {
  const known = referrersApis.get(requester.route) ?? new Map<string, Promise<boolean>>();
  referrersApis.set(requester.route, known);
  const api = requester.url('referrers/');
  const pending = known.get(api);
  if (pending !== undefined && !(await pending)) return undefined;
  const reading = readReferrersPages(requester, digest, options);
  if (pending === undefined) {
    const settled = reading.then(
      (result) => result !== 'missing',
      () => true,
    );
    known.set(api, settled);
    void settled.then(async () => (await reading.catch(() => undefined)) === undefined && known.delete(api));
  }
  const result = await reading;
  return result === 'missing' ? undefined : result;
}

/** The listed manifests; `missing` without the API, and undefined where the repository is not there. */
async function readReferrersPages(
  requester: RegistryRequester,
  digest: string,
  options: ReferrersOptions,
): Promise<Descriptor[] | 'missing' | undefined> {
  const subject = `${requester.name}: referrers of ${digest}`;
  const filter =
    options.artifactType === undefined ? '' : `?artifactType=${encodeURIComponent(options.artifactType)}`;
  const descriptors: Descriptor[] = [];
  let pages = 0;
  for await (const page of readPages(requester, `referrers/${digest}${filter}`, subject, options)) {
    // Some registries answer with a web page or an empty object instead of 404.
    const isIndex = page.mediaType === mediaTypes.ociIndex;
    if (pages++ === 0 && ([404, 405].includes(page.status) || (page.status === 200 && !isIndex))) {
      const { registryCodes } = await requester.failure(page.response, subject, 'pull');
      return registryCodes.some((code) => unknownContent.includes(code)) ? undefined : 'missing';
    }
    if (page.status !== 200) throw await requester.failure(page.response, subject, 'pull');
    const parsed = parseManifest(page.bytes, { subject, mediaType: page.mediaType });
    if (parsed.kind === 'index') descriptors.push(...parsed.index.manifests);
  }
  return descriptors;
}

/** Codes that say that what was asked about is missing, and not the API. */
const unknownContent = ['NAME_UNKNOWN', 'MANIFEST_UNKNOWN'];
