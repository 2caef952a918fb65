import { addContext } from '../../core/diagnostics-error.js';
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { CancelOptions } from '../../core/concurrency.js';
import {
  DigestMismatchError,
  LimitError,
  OpmateError,
  RegistryError,
  UsageError,
  fileError,
  throwIfCancelled,
} from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { isJsonObject } from '../../document/json.js';
import { compareBytes } from '../../core/order.js';
import { compareVersions, parseTolerantVersion, tryParse } from '../../core/semver.js';
import { readBody } from '../transport/response-body.js';
import { readRegistryErrors } from '../transport/transport-responses.js';
import { NetworkError } from '../transport/transport-faults.js';
import { type Transport, type TransportResponse, describeUrl } from '../transport/transport.js';

interface AppRegistryOptions {
  transport: Transport;
  /** HTTP URL without user information, query and fragment; API paths are appended. */
  endpoint: URL;
  /** Value of `Authorization`, sent to the origin of the endpoint only. */
  token?: string | undefined;
}

interface AppRegistryPackage {
  /** Name without the namespace; safe as a file name. */
  name: string;
  /** Default release, or else the highest; undefined if the list has none. */
  release: string | undefined;
}

interface AppRegistryContent {
  /** 64 hexadecimal digits. */
  sha256: string;
  /** Bytes; undefined if unknown. */
  size: number | undefined;
}

const maxListBytes = 64 * 1024 * 1024;
const maxPackages = 10_000;
const maxReleaseBytes = 4 * 1024 * 1024;
const maxBlobBytes = 256 * 1024 * 1024;
/** Maximum attempts to read a response that is cut off. */
const maxAttempts = 3;

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const releasePattern = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/;

/** Parses the URL of an app registry. Throws UsageError. */
export function parseAppRegistryEndpoint(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:';
  if (url === undefined || !isHttp || url.username || url.password || url.search || url.hash) {
    throw new UsageError('--appregistry-endpoint: not a URL of an app registry', {
      hint: 'use a URL such as https://quay.io/cnr, and --auth-token for a token',
    });
  }
  return url;
}

/** Reports whether a text is a valid namespace. */
export function isAppRegistryNamespace(text: string): boolean {
  return namePattern.test(text);
}

/**
 * Client of an app registry (CNR), the former operator service of Quay.io: packages of a namespace, releases of a
 * package, and blobs by SHA-256. Names and digests are checked before they become part of a URL or path. Limits: 64 MiB
 * and 10,000 packages per list, 4 MiB per release, 256 MiB per blob.
 *
 * All methods throw OpmateError: AUTH, NOT_FOUND or REGISTRY for error responses, SYNTAX and INVALID for invalid ones,
 * LIMIT, DIGEST, NETWORK, and UNSAFE for a redirect to plain HTTP.
 */
export class AppRegistryClient {
  readonly #transport: Transport;
  readonly #base: string;
  readonly #host: string;
  readonly #token: string | undefined;

  constructor({ transport, endpoint, token }: AppRegistryOptions) {
    if (token !== undefined && !/^[\x20-\x7e]+$/.test(token)) {
      throw new UsageError('--auth-token: characters not allowed in a header', {
        hint: 'use the token as the registry returned it, without line breaks',
      });
    }
    this.#transport = transport;
    this.#base = `${endpoint.origin}${endpoint.pathname.replace(/\/+$/, '')}/api/v1/packages`;
    this.#host = endpoint.host;
    this.#token = token;
  }

  /** Lists the packages of a namespace by name. */
  async listPackages(namespace: string, options: CancelOptions = {}): Promise<AppRegistryPackage[]> {
    const subject = `${this.#host}: namespace ${namespace}`;
    const query = `?namespace=${encodeURIComponent(namespace)}`;
    const list = await this.#getJson(query, subject, maxListBytes, options);
    if (!Array.isArray(list)) throw this.#unexpected(subject, 'a list of packages');
    if (list.length > maxPackages)
      throw new LimitError(`${list.length} packages, more than ${maxPackages}`, { subject });
    const packages = new Map<string, AppRegistryPackage>();
    for (const [i, item] of list.entries()) {
      if (!isJsonObject(item) || typeof item['name'] !== 'string')
        throw this.#unexpected(`${subject}: [${i}]`, 'a package with a name');
      const [owner, ...rest] = item['name'].split('/');
      const isWhole = rest.length > 0;
      // A server without this filter returns all packages.
      if (isWhole && owner !== namespace) continue;
      const name = isWhole ? rest.join('/') : (owner as string);
      if (!namePattern.test(name))
        throw new OpmateError('UNSAFE', `${quoteGo(name.slice(0, 200))} is not a package name`, {
          subject,
        });
      packages.set(name, { name, release: findRelease(item['default'], item['releases']) });
    }
    return [...packages.values()].sort((a, b) => compareBytes(a.name, b.name));
  }

  /** Returns the content of the release of a package. */
  async findContent(
    namespace: string,
    { name, release }: AppRegistryPackage,
    options: CancelOptions = {},
  ): Promise<AppRegistryContent> {
    const subject = `${this.#host}: ${namespace}/${name}`;
    const path = `/${namespace}/${name}`;
    const chosen = release ?? (await this.#findRelease(path, subject, options));
    if (!releasePattern.test(chosen))
      throw new OpmateError('UNSAFE', `${quoteGo(chosen.slice(0, 200))} is not a release`, { subject });
    const where = `${path}/${encodeURIComponent(chosen)}`;
    const what = `${subject}:${chosen}`;
    let response: unknown;
    try {
      response = await this.#getJson(where, what, maxReleaseBytes, options);
    } catch (error) {
      if (!(error instanceof OpmateError) || error.code !== 'NOT_FOUND') throw error;
      // Some servers require the kind of content, which is `helm` for operators.
      response = await this.#getJson(`${where}/helm`, what, maxReleaseBytes, options);
    }
    const manifests: unknown[] = Array.isArray(response) ? response : [response];
    const contents = manifests.flatMap((manifest) =>
      isJsonObject(manifest) && isJsonObject(manifest['content']) ? [manifest['content']] : [],
    );
    const isHelm = ({ mediaType }: { mediaType?: unknown }): boolean =>
      typeof mediaType === 'string' && mediaType.includes('.helm.');
    const content = contents.find(isHelm) ?? contents[0];
    if (content === undefined) throw this.#unexpected(what, 'a release with its content');
    const { digest, size } = content;
    const [, sha256] = /^(?:sha256:)?([0-9a-f]{64})$/.exec(String(digest)) ?? [];
    if (sha256 === undefined) throw this.#unexpected(`${what}: content.digest`, 'a SHA-256');
    const isSize = typeof size === 'number' && Number.isSafeInteger(size) && size > 0;
    return { sha256, size: isSize ? size : undefined };
  }

  /** Writes a blob to a file. Throws unless it matches its digest; the caller removes the file. */
  async download(
    namespace: string,
    name: string,
    content: AppRegistryContent,
    file: string,
    options: CancelOptions = {},
  ): Promise<void> {
    const { sha256, size } = content;
    const subject = `${this.#host}: ${namespace}/${name}: blob sha256:${sha256}`;
    const limit = Math.min(size ?? maxBlobBytes, maxBlobBytes);
    if (size !== undefined && size > maxBlobBytes)
      throw new LimitError(`${size} bytes, more than ${maxBlobBytes}`, { subject });
    await retryTemporary(options, async () => {
      const response = await this.#get(`/${namespace}/${name}/blobs/sha256/${sha256}`, subject, options);
      await writeChecked(file, response, { sha256, size, limit, subject }, options);
    });
  }

  /** Returns the highest release of a package whose list entry has none. */
  async #findRelease(path: string, subject: string, options: CancelOptions): Promise<string> {
    const list = await this.#getJson(path, subject, maxListBytes, options);
    const releases = (Array.isArray(list) ? list : [list]).flatMap((item) =>
      isJsonObject(item) ? [item['release']] : [],
    );
    const release = findRelease(undefined, releases);
    if (release === undefined) throw this.#unexpected(subject, 'releases');
    return release;
  }

  async #getJson(path: string, subject: string, limit: number, options: CancelOptions): Promise<unknown> {
    const bytes = await retryTemporary(options, async () => {
      const response = await this.#get(path, subject, options, { accept: 'application/json' });
      return response.read(limit, `${subject}: response`);
    });
    try {
      return JSON.parse(bytes.toString('utf8'));
    } catch (cause) {
      throw new OpmateError('SYNTAX', 'response is not JSON', { subject, cause, hint: endpointHint });
    }
  }

  async #get(
    path: string,
    subject: string,
    { signal }: CancelOptions,
    headers: Record<string, string> = {},
  ): Promise<TransportResponse> {
    const url = `${this.#base}${path}`;
    const authorization = this.#token;
    try {
      const response = await this.#transport.send({
        method: 'GET',
        url,
        headers: { ...headers, ...(authorization !== undefined && { authorization }) },
        signal,
      });
      if (response.status === 200) return response;
      throw await failure(response, `${subject} (${describeUrl(url)})`, authorization);
    } catch (error) {
      if (error instanceof NetworkError && error.hint === undefined) {
        throw addContext(error, { hint: endpointHint });
      }
      throw error;
    }
  }

  #unexpected(subject: string, expected: string): OpmateError {
    return new OpmateError('INVALID', `response is not ${expected}`, { subject, hint: endpointHint });
  }
}

const endpointHint =
  'check --appregistry-endpoint; where the service is gone, build from --manifests DIR or --bundles LIST';

/** Repeats work if a response is cut off; the transport retries only until a response begins. */
async function retryTemporary<T>({ signal }: CancelOptions, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      throwIfCancelled(signal);
      const isTemporary = error instanceof NetworkError && error.temporary;
      if (!isTemporary || attempt >= maxAttempts) throw error;
    }
  }
}

async function failure(
  response: TransportResponse,
  subject: string,
  token: string | undefined,
): Promise<RegistryError> {
  const { status } = response;
  const { summary } = await readRegistryErrors(response);
  const isRefused = status === 401 || status === 403;
  const code = isRefused ? 'AUTH' : status === 404 || status === 410 ? 'NOT_FOUND' : 'REGISTRY';
  const hint = isRefused ? 'specify the token of the app registry with --auth-token' : endpointHint;
  // A server may repeat the request.
  const problem = token === undefined ? summary : summary.replaceAll(token, '***');
  return new RegistryError(problem, { subject, status, code, hint });
}

/** Returns the default release, or else the highest of a list; names that are no versions are lowest. */
function findRelease(chosen: unknown, releases: unknown): string | undefined {
  if (typeof chosen === 'string' && chosen !== '') return chosen;
  const names = Array.isArray(releases)
    ? releases.filter((item: unknown): item is string => typeof item === 'string' && item !== '')
    : [];
  return names.reduce<string | undefined>(
    (best, name) => (best === undefined || compareReleases(name, best) > 0 ? name : best),
    undefined,
  );
}

function compareReleases(a: string, b: string): number {
  const [version, other] = [tryParse(parseTolerantVersion, a), tryParse(parseTolerantVersion, b)];
  if (version !== undefined && other !== undefined)
    return compareVersions(version, other) || compareBytes(a, b);
  return Number(version !== undefined) - Number(other !== undefined) || compareBytes(a, b);
}

interface ExpectedBlob extends AppRegistryContent {
  /** Maximum bytes. */
  limit: number;
  subject: string;
}

async function writeChecked(
  file: string,
  response: TransportResponse,
  { sha256, size, limit, subject }: ExpectedBlob,
  { signal }: CancelOptions,
): Promise<void> {
  const hash = createHash('sha256');
  let received = 0;
  async function* pieces(): AsyncGenerator<Buffer> {
    for await (const chunk of readBody(response)) {
      throwIfCancelled(signal);
      received += chunk.length;
      if (received > limit) {
        if (size === undefined) throw new LimitError(`more than ${limit} bytes`, { subject });
        throw new DigestMismatchError(`expected ${size} bytes, got more`, { subject });
      }
      hash.update(chunk);
      yield chunk;
    }
  }
  try {
    await pipeline(pieces, createWriteStream(file, { mode: 0o600 }));
  } catch (error) {
    response.body.destroy();
    throw fileError(file, error, { file });
  }
  const actual = hash.digest('hex');
  if (actual !== sha256)
    throw new DigestMismatchError(`digest mismatch: got sha256:${actual} after ${received} bytes`, {
      subject,
    });
}
