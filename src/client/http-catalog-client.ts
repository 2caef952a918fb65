import { deprecationKey, readDeprecations } from '../model/deprecations.js';
import { describeDeprecations } from '../model/describe.js';
import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError, UsageError, redactUrls, throwIfCancelled } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { compareBytes, sortedByBytes } from '../core/order.js';
import { type BundleBlob, type ChannelBlob, schemas } from '../model/declarative-config.js';
import { findHead } from '../graph/channel-graph.js';
import { readLimited } from '../oci/image/read-limited.js';
import {
  type BlobQuery,
  type CatalogBlob,
  type LineLimits,
  requireMatch,
  readBlobs,
} from './catalog-blobs.js';
import type { BundleKey, CatalogQueries, CatalogEntry, CatalogPackage } from './catalog-queries.js';
import { type ListedCatalog, readListing } from './catalog-listing.js';
import { type ClientOptions, maxCollectedBytes } from './client-options.js';
import { ContentCopy } from './content-copy.js';
import { HttpRequests, type Validators, formatLabel, getValidators } from './http-requests.js';

export interface HttpClientOptions extends ClientOptions {
  /** Cache directory of `all`, which then fetches changes only; default: no cache. */
  cacheDirectory?: string | undefined;
  /** Maximum bytes of a blob; default: 64 MiB. */
  maxBlobBytes?: number | undefined;
  /** Maximum bytes of a response; default: 4 GiB. */
  maxBytes?: number | undefined;
}

/** Result of `refresh`. */
interface RefreshResult {
  changed: boolean;
  /** Digest `sha256:…` of the content, with a cache directory. */
  hash?: string;
}

const defaultMaxBlobBytes = 64 * 1024 * 1024;
const defaultMaxBytes = 4 * 1024 * 1024 * 1024;
const maxListingBytes = 16 * 1024 * 1024;

/**
 * A client of the HTTP catalog API of opmate and catalogd. If the server supports no conditional requests, content
 * is always reported as changed.
 */
export class HttpCatalogClient implements CatalogQueries<BundleBlob> {
  readonly #requests: HttpRequests;
  readonly #limits: LineLimits;
  /** URL of the server, without a trailing slash. */
  readonly #root: string;
  readonly #catalog: string | undefined;
  readonly #copy: ContentCopy | undefined;
  #validators: Validators = {};

  constructor(url: string, options: HttpClientOptions = {}) {
    const { cacheDirectory, maxBlobBytes = defaultMaxBlobBytes, maxBytes = defaultMaxBytes } = options;
    const base = parseCatalogUrl(url);
    this.#catalog = /\/catalogs\/[^/]+$/.test(base) ? base : undefined;
    this.#root = base.replace(/\/catalogs(\/[^/]+)?$/, '');
    this.#limits = { maxBlobBytes, maxBytes };
    this.#requests = new HttpRequests(options);
    this.#copy =
      cacheDirectory === undefined || this.#catalog === undefined
        ? undefined
        : new ContentCopy(cacheDirectory, this.#url('all'), maxBytes);
  }

  /** Lists the catalogs of the server. Supported by opmate only. */
  async catalogs({ signal }: CancelOptions = {}): Promise<ListedCatalog[]> {
    const url = `${this.#root}/catalogs`;
    const response = await this.#requests.send({ url, signal });
    return readListing(await readLimited(response.body, maxListingBytes, formatLabel(url)), formatLabel(url));
  }

  /** Yields all blobs in the order of the catalog. With a cache directory, the copy is updated first and then read. */
  async *all({ signal }: CancelOptions = {}): AsyncGenerator<CatalogBlob, void, undefined> {
    const url = this.#url('all');
    if (this.#copy === undefined) {
      const response = await this.#requests.send({ url, signal });
      yield* readBlobs(response.body, formatLabel(url), this.#limits);
      return;
    }
    const { handle } = await this.#openCopy(this.#copy, signal);
    const stream = handle.createReadStream({ start: 0, highWaterMark: 256 * 1024 });
    for await (const blob of readBlobs(stream as AsyncIterable<Buffer>, formatLabel(url), this.#limits)) {
      throwIfCancelled(signal);
      yield blob;
    }
  }

  /** Yields matching blobs in the order of the catalog; all without a query. */
  metas(query: BlobQuery, options: CancelOptions = {}): AsyncGenerator<CatalogBlob, void, undefined> {
    return this.#metas(query, options, this.#limits);
  }

  /**
   * Reports whether the catalog changed since the last call; the first time it has. With a cache directory, its state
   * is kept there for later clients, and changed content is fetched into it.
   */
  async refresh({ signal }: CancelOptions = {}): Promise<RefreshResult> {
    if (this.#copy !== undefined) {
      const { handle, hash, changed } = await this.#openCopy(this.#copy, signal);
      await handle.close();
      return { changed, hash };
    }
    const validators = this.#validators;
    const response = await this.#requests.send({ url: this.#url('all'), method: 'HEAD', validators, signal });
    response.body.resume();
    if (response.status === 304) return { changed: false };
    this.#validators = getValidators(response);
    // A server without conditional requests may still send tags.
    return { changed: this.#validators.etag === undefined || this.#validators.etag !== validators.etag };
  }

  async listPackages(options: CancelOptions = {}): Promise<string[]> {
    const names = new Set<string>();
    for await (const { name } of this.#readLimited({ schema: schemas.package }, options)) names.add(name);
    return sortedByBytes(names);
  }

  async getPackage(name: string, options: CancelOptions = {}): Promise<CatalogPackage> {
    if (name === '') throw new UsageError('getPackage: missing package name');
    const [[response], channels, deprecations] = await Promise.all([
      this.#list({ schema: schemas.package, name }, options),
      this.#channels(name, options),
      this.#list({ schema: schemas.deprecations, package: name }, options),
    ]);
    if (response?.kind !== 'package') throw this.#notFound(`package ${quoteGo(name)}`);
    const messages = readDeprecations(
      deprecations.flatMap((item) => (item.kind === 'deprecations' ? describeDeprecations(item.blob) : [])),
    );
    const findDeprecation = (schema: string, of?: string): { deprecation?: string } => {
      const deprecation = messages.get(deprecationKey(schema, of));
      return deprecation === undefined ? {} : { deprecation };
    };
    return {
      name,
      defaultChannel: response.blob.defaultChannel,
      channels: channels
        .map((channel) => {
          const head = findHead(channel.entries ?? []);
          return { name: channel.name, head, ...findDeprecation(schemas.channel, channel.name) };
        })
        .sort((a, b) => compareBytes(a.name, b.name)),
      ...findDeprecation(schemas.package),
    };
  }

  async listEntries(packageName: string, options: CancelOptions = {}): Promise<CatalogEntry[]> {
    if (packageName === '') throw new UsageError('listEntries: missing package name');
    const channels = await this.#channels(packageName, options);
    if (channels.length === 0) throw this.#notFound(`package ${quoteGo(packageName)}`);
    const entries = channels.flatMap(({ name: channel, entries }) =>
      (entries ?? []).map((entry) => ({ package: packageName, channel, ...entry })),
    );
    return sortEntries(entries);
  }

  /** Returns the `olm.bundle` blob, which is the same in all channels. */
  async getBundle(key: Omit<BundleKey, 'channel'>, options: CancelOptions = {}): Promise<BundleBlob> {
    const { package: packageName, name } = key;
    if (packageName === '' || name === '') throw new UsageError('getBundle: missing package or bundle name');
    for await (const blob of this.#readLimited(
      { schema: schemas.bundle, package: packageName, name },
      options,
    )) {
      if (blob.kind === 'bundle') return blob.blob;
    }
    throw this.#notFound(`package ${quoteGo(packageName)}, bundle ${quoteGo(name)}`);
  }

  async *bundles(options: CancelOptions = {}): AsyncGenerator<BundleBlob, void, undefined> {
    for await (const blob of this.metas({ schema: schemas.bundle }, options)) {
      if (blob.kind === 'bundle') yield blob.blob;
    }
  }

  close(): void {
    this.#requests.close();
  }

  async *#metas(
    query: BlobQuery,
    { signal }: CancelOptions,
    limits: LineLimits,
  ): AsyncGenerator<CatalogBlob, void, undefined> {
    const fields = Object.entries(query).filter(
      (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== '',
    );
    const parameters = new URLSearchParams(fields).toString();
    const url = this.#url('metas') + (parameters === '' ? '' : `?${parameters}`);
    const label = formatLabel(url);
    const response = await this.#requests.send({ url, signal });
    for await (const blob of readBlobs(response.body, label, limits)) {
      requireMatch(blob, query, label);
      yield blob;
    }
  }

  /** Reads blobs with the limit of collected responses. */
  #readLimited(query: BlobQuery, options: CancelOptions): AsyncGenerator<CatalogBlob, void, undefined> {
    const maxBytes = Math.min(this.#limits.maxBytes, maxCollectedBytes);
    return this.#metas(query, options, { ...this.#limits, maxBytes });
  }

  async #list(query: BlobQuery, options: CancelOptions): Promise<CatalogBlob[]> {
    const blobs: CatalogBlob[] = [];
    for await (const blob of this.#readLimited(query, options)) blobs.push(blob);
    return blobs;
  }

  async #channels(packageName: string, options: CancelOptions): Promise<ChannelBlob[]> {
    const blobs = await this.#list({ schema: schemas.channel, package: packageName }, options);
    return blobs.flatMap((blob) => (blob.kind === 'channel' ? blob.blob : []));
  }

  #openCopy(copy: ContentCopy, signal: AbortSignal | undefined) {
    return copy.open(
      (validators) => this.#requests.send({ url: this.#url('all'), validators, signal }),
      signal,
    );
  }

  #url(route: 'all' | 'metas'): string {
    if (this.#catalog !== undefined) return `${this.#catalog}/api/v1/${route}`;
    throw new UsageError('expected the URL of a catalog, got that of a server', {
      subject: this.#root,
      hint: 'add /catalogs/NAME; catalogs() lists the names',
    });
  }

  #notFound(subject: string): OpmateError {
    return new OpmateError('NOT_FOUND', `${subject} not found`, { subject: this.#catalog ?? this.#root });
  }
}

/** Returns a copy sorted by channel, then by name. */
export function sortEntries(entries: readonly CatalogEntry[]): CatalogEntry[] {
  return [...entries].sort((a, b) => compareBytes(a.channel, b.channel) || compareBytes(a.name, b.name));
}

/** Returns a valid URL without a trailing slash. */
function parseCatalogUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isPlain = url !== undefined && url.username === '' && url.password === '' && url.search === '';
  if (!isPlain || url.hash !== '' || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`${quoteGo(redactUrls(text))} is not the http or https URL of a catalog`, {
      hint: 'use a URL with scheme, host and path, e.g. https://catalogs.example/catalogs/NAME',
    });
  }
  return url.href.replace(/\/+$/, '');
}
