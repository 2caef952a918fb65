import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type CancelOptions, mapConcurrent } from '../core/concurrency.js';
import { addContext } from '../core/diagnostics-error.js';
import {
  DigestMismatchError,
  fileError,
  invalidValue,
  LimitError,
  OpmateError,
  RegistryError,
  throwIfCancelled,
  UsageError,
} from '../core/errors.js';
import { compareBytes } from '../core/order.js';
import { compareVersions, parseTolerantVersion, tryParse } from '../core/semver.js';
import { quoteGo } from '../document/go-json.js';
import { isJsonObject } from '../document/json.js';
import { withTemporaryDirectory } from '../files/temporary-directory.js';
import { NetworkError } from '../oci/transport/transport-faults.js';
import { readRegistryErrors } from '../oci/transport/transport-responses.js';
import { type Transport, type TransportResponse, describeUrl } from '../oci/transport/transport.js';
import { loadAppRegistry } from '../sqlite/legacy/appregistry.js';
import type { LoadOptions, LoadReport } from '../sqlite/legacy/manifest-loader.js';
import type { Database } from '../sqlite/schema/database.js';
import type { Session } from './session.js';

const maxListBytes = 64 * 1024 * 1024;
const maxPackages = 10_000;
const maxReleaseBytes = 4 * 1024 * 1024;
const maxBlobBytes = 256 * 1024 * 1024;
/** Maximum attempts to read a response that is cut off. */
const maxAttempts = 3;
/** Maximum number of parallel package downloads. */
const concurrency = 4;

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const releasePattern = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/;

/** A namespace of an app registry. */
export interface AppRegistryNamespace {
  endpoint: URL;
  namespace: string;
  /** Name in messages: `quay.io/community-operators`. */
  label: string;
}

/**
 * Parses `[HOST[/PATH]/]NAMESPACE`, where HOST has a dot or colon or is `localhost`; default: `quay.io/cnr`, where
 * OperatorHub content was published. The `endpoint` option takes precedence over the host, which is then used only in
 * messages. `useHttp` is for an address without scheme. Throws UsageError.
 */
export function parseAppRegistryNamespace(
  text: string,
  options: { endpoint?: string | undefined; useHttp?: boolean | undefined } = {},
): AppRegistryNamespace {
  const parts = text.split('/');
  const hasHost = parts.length > 1 && (/[.:]/.test(parts[0] as string) || parts[0] === 'localhost');
  const host = hasHost ? (parts.shift() as string) : undefined;
  const namespace = parts.pop() ?? '';
  if (!namePattern.test(namespace) || (host === undefined && parts.length > 0) || parts.includes('')) {
    throw invalidValue('options.namespace', text, 'invalid app registry namespace', {
      hint: 'use NAMESPACE or HOST/NAMESPACE, e.g. quay.io/community-operators',
    });
  }
  const scheme = options.useHttp === true ? 'http' : 'https';
  const location = `${host ?? 'quay.io'}/${parts.join('/') || 'cnr'}`;
  const address = options.endpoint;
  const endpoint = parseAppRegistryEndpoint(
    address === undefined
      ? `${scheme}://${location}`
      : /^[a-z]+:\/\//i.test(address)
        ? address
        : `${scheme}://${address}`,
  );
  const owner = host === undefined ? endpoint.host : [host, ...parts].join('/');
  return { endpoint, namespace, label: `${owner}/${namespace}` };
}

/** Parses the URL of an app registry. Throws UsageError. */
export function parseAppRegistryEndpoint(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url === undefined || !isHttp || url.username || url.password || url.search || url.hash) {
    throw new UsageError('options.endpoint: not a URL of an app registry', {
      hint: 'use a URL such as https://quay.io/cnr, and options.token for a token',
    });
  }
  return url;
}

/**
 * A client of an app registry (CNR), the former operator service of Quay.io: packages of a namespace, releases of
 * a package, and blobs by SHA-256. Names and digests are checked before they become part of a URL or path. Limits: 64 MiB
 * and 10,000 packages per list, 4 MiB per release, 256 MiB per blob. The token is sent to the origin of the endpoint only.
 *
 * Its functions throw OpmateError: AUTH, NOT_FOUND or REGISTRY for error responses, SYNTAX and INVALID for invalid ones,
 * LIMIT, DIGEST, NETWORK, and UNSAFE for a redirect to plain HTTP.
 */
export class AppRegistryClient {
  readonly #transport: Transport;
  readonly #endpoint: URL;
  readonly #namespace: string;
  readonly #token: string | undefined;
  readonly #signal: AbortSignal | undefined;
  readonly #base: string;

  constructor(
    transport: Transport,
    { endpoint, namespace }: Pick<AppRegistryNamespace, 'endpoint' | 'namespace'>,
    { token, signal }: CancelOptions & { token?: string | undefined } = {},
  ) {
    if (token !== undefined && !/^[\x20-\x7e]+$/.test(token)) {
      throw new UsageError('options.token: characters not allowed in a header', {
        hint: 'use the token as the registry returned it, without line breaks',
      });
    }
    this.#transport = transport;
    this.#endpoint = endpoint;
    this.#namespace = namespace;
    this.#token = token;
    this.#signal = signal;
    this.#base = `${endpoint.origin}${endpoint.pathname.replace(/\/+$/, '')}/api/v1/packages`;
  }

  /** Reads a response, again if it is cut off: the transport retries only until a response begins. */
  async #get<T>(
    path: string,
    subject: string,
    read: (response: TransportResponse) => Promise<T>,
    accept?: string,
  ): Promise<T> {
    const url = `${this.#base}${path}`;
    const headers = {
      ...(accept && { accept }),
      ...(this.#token !== undefined && { authorization: this.#token }),
    };
    for (let attempt = 1; ; attempt++) {
      try {
        const response = await this.#transport
          .send({ method: 'GET', url, headers, signal: this.#signal })
          .catch((error: unknown) => {
            throw error instanceof NetworkError ? addContext(error, { hint: endpointHint }) : error;
          });
        if (response.status === 200) return await read(response);
        throw await toFailure(response, `${subject} (${describeUrl(url)})`, this.#token);
      } catch (error) {
        throwIfCancelled(this.#signal);
        const isTemporary = error instanceof NetworkError && error.temporary;
        if (!isTemporary || attempt >= maxAttempts) throw error;
      }
    }
  }

  async #getJson(path: string, subject: string, limit: number): Promise<unknown> {
    const read = (response: TransportResponse) => response.read(limit, `${subject}: response`);
    const bytes = await this.#get(path, subject, read, 'application/json');
    try {
      return JSON.parse(bytes.toString());
    } catch (cause) {
      throw new OpmateError('SYNTAX', 'response: invalid JSON', { subject, cause, hint: endpointHint });
    }
  }

  /** Lists the packages by name, which is safe as a file name, with their default or highest release, if any. */
  async listPackages() {
    const subject = `${this.#endpoint.host}: namespace ${this.#namespace}`;
    const list = await this.#getJson(
      `?namespace=${encodeURIComponent(this.#namespace)}`,
      subject,
      maxListBytes,
    );
    if (!Array.isArray(list)) throw unexpected(subject, 'a list of packages');
    if (list.length > maxPackages)
      throw new LimitError(`${list.length} packages, more than ${maxPackages}`, { subject });
    const packages = new Map<string, { name: string; release: string | undefined }>();
    for (const [i, item] of list.entries()) {
      if (!isJsonObject(item) || typeof item['name'] !== 'string')
        throw unexpected(`${subject}: [${i}]`, 'a package with a name');
      const [, owner, name = ''] = /^(?:([^/]*)\/)?(.*)$/s.exec(item['name']) ?? [];
      // A server without this filter returns all packages.
      if (owner !== undefined && owner !== this.#namespace) continue;
      if (!namePattern.test(name))
        throw new OpmateError('UNSAFE', `${quoteGo(name.slice(0, 200))} is not a package name`, {
          subject,
        });
      packages.set(name, { name, release: findRelease(item['default'], item['releases']) });
    }
    return [...packages.values()].sort((a, b) => compareBytes(a.name, b.name));
  }

  /** Returns the digest and size in bytes, if known, of the content of a release; default: the highest. */
  async findContent({ name, release }: { name: string; release: string | undefined }) {
    const subject = `${this.#endpoint.host}: ${this.#namespace}/${name}`;
    const path = `/${this.#namespace}/${name}`;
    const toList = (value: unknown): unknown[] => (Array.isArray(value) ? value : [value]);
    const chosen =
      release ??
      findRelease(
        undefined,
        toList(await this.#getJson(path, subject, maxListBytes)).map(
          (item) => isJsonObject(item) && item['release'],
        ),
      );
    if (chosen === undefined) throw unexpected(subject, 'releases');
    if (!releasePattern.test(chosen))
      throw new OpmateError('UNSAFE', `${quoteGo(chosen.slice(0, 200))} is not a release`, { subject });
    const where = `${path}/${encodeURIComponent(chosen)}`;
    const what = `${subject}:${chosen}`;
    const response = await this.#getJson(where, what, maxReleaseBytes).catch((error: unknown) => {
      if (!(error instanceof OpmateError) || error.code !== 'NOT_FOUND') throw error;
      // Some servers require the kind of content, which is `helm` for operators.
      return this.#getJson(`${where}/helm`, what, maxReleaseBytes);
    });
    const contents = toList(response).flatMap((manifest) =>
      isJsonObject(manifest) && isJsonObject(manifest['content']) ? [manifest['content']] : [],
    );
    const content = contents.find(({ mediaType }) => /\.helm\./.test(String(mediaType))) ?? contents[0];
    if (content === undefined) throw unexpected(what, 'a release with its content');
    const { digest, size } = content;
    const [, sha256] = /^(?:sha256:)?([0-9a-f]{64})$/.exec(String(digest)) ?? [];
    if (sha256 === undefined) throw unexpected(`${what}: content.digest`, 'a SHA-256');
    return { sha256, size: Number.isSafeInteger(size) && Number(size) > 0 ? Number(size) : undefined };
  }

  /** Writes a blob to a file. Throws unless it matches its digest; the caller removes the file. */
  async download(
    name: string,
    { sha256, size }: { sha256: string; size: number | undefined },
    file: string,
  ): Promise<void> {
    const subject = `${this.#endpoint.host}: ${this.#namespace}/${name}: blob sha256:${sha256}`;
    if (size !== undefined && size > maxBlobBytes)
      throw new LimitError(`${size} bytes, more than ${maxBlobBytes}`, { subject });
    await this.#get(`/${this.#namespace}/${name}/blobs/sha256/${sha256}`, subject, async ({ body }) => {
      const hash = createHash('sha256');
      let received = 0;
      const signal = this.#signal;
      async function* pieces(): AsyncGenerator<Buffer> {
        for await (const chunk of body as AsyncIterable<Buffer>) {
          throwIfCancelled(signal);
          received += chunk.length;
          if (size !== undefined && received > size)
            throw new DigestMismatchError(`expected ${size} bytes, got more`, { subject });
          if (received > maxBlobBytes) throw new LimitError(`more than ${maxBlobBytes} bytes`, { subject });
          hash.update(chunk);
          yield chunk;
        }
      }
      try {
        await pipeline(pieces, createWriteStream(file, { mode: 0o600 }));
      } catch (error) {
        body.destroy();
        throw fileError(file, error, { file });
      }
      const actual = hash.digest('hex');
      if (actual === sha256) return;
      const problem = `digest mismatch: got sha256:${actual} after ${received} bytes`;
      throw new DigestMismatchError(problem, { subject });
    });
  }
}

const endpointHint =
  'check options.endpoint; where the service is gone, build from options.manifests DIR or options.bundles LIST';

function unexpected(subject: string, expected: string): OpmateError {
  return new OpmateError('INVALID', `response is not ${expected}`, { subject, hint: endpointHint });
}

async function toFailure(
  response: TransportResponse,
  subject: string,
  token: string | undefined,
): Promise<RegistryError> {
  const { status } = response;
  const { summary } = await readRegistryErrors(response);
  const isRefused = status === 401 || status === 403;
  const code = isRefused ? 'AUTH' : status === 404 || status === 410 ? 'NOT_FOUND' : 'REGISTRY';
  const hint = isRefused ? 'specify the token of the app registry with options.token' : endpointHint;
  // A server may repeat the request.
  const problem = token === undefined ? summary : summary.replaceAll(token, '***');
  return new RegistryError(problem, { subject, status, code, hint });
}

/** Returns the default release, or else the highest of a list; names that are no versions are lowest. */
function findRelease(chosen: unknown, releases: unknown): string | undefined {
  if (typeof chosen === 'string' && chosen !== '') return chosen;
  const names = Array.isArray(releases)
    ? releases.filter((item) => typeof item === 'string' && item !== '')
    : [];
  return (names as string[]).sort(compareReleases).at(-1);
}

function compareReleases(a: string, b: string): number {
  const [version, other] = [tryParse(parseTolerantVersion, a), tryParse(parseTolerantVersion, b)];
  if (version !== undefined && other !== undefined)
    return compareVersions(version, other) || compareBytes(a, b);
  return Number(version !== undefined) - Number(other !== undefined) || compareBytes(a, b);
}

/**
 * Downloads the default release of every package in a namespace and loads them into a database, within the caller's
 * transaction. Throws the errors of `AppRegistryClient` and `loadAppRegistry`, and NOT_FOUND for an empty namespace.
 */
export async function loadAppRegistryNamespace(
  database: Database,
  place: AppRegistryNamespace,
  session: Session,
  { token, permissive }: Pick<LoadOptions, 'permissive'> & { token?: string | undefined },
): Promise<LoadReport> {
  const { label } = place;
  const transport = (await session.connect()).plainTransport();
  const registry = new AppRegistryClient(transport, place, { token, signal: session.signal });
  const packages = await registry.listPackages();
  if (packages.length === 0) {
    throw new OpmateError('NOT_FOUND', 'no packages', {
      subject: label,
      hint: 'check the namespace, or add options.token for a private one',
    });
  }
  return withTemporaryDirectory(session, async (directory) => {
    await mapConcurrent(
      packages,
      concurrency,
      async ({ name, release }) => {
        const task = `pull ${label}/${name}`;
        session.logger.progress({ task, state: 'start' });
        try {
          const content = await registry.findContent({ name, release });
          await registry.download(name, content, path.join(directory, `${name}.tar.gz`));
        } finally {
          session.logger.progress({ task, state: 'done' });
        }
      },
      session,
    );
    return loadAppRegistry(database, directory, session, { permissive, label });
  });
}
