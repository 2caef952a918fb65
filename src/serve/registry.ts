import { createReadStream } from 'node:fs';
import { realpath } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { basename } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type CancelOptions, onAbort } from '../core/concurrency.js';
import { type DigestAlgorithm, computeDigest, isDigest, parseDigest } from '../core/digest.js';
import { LimitError, UsageError, getMessage, systemCode, throwIfCancelled } from '../core/errors.js';
import type { ArchiveProof } from '../oci/archive-set/archive-index.js';
import { type Logger, silentLogger } from '../core/log.js';
import { compareBytes, sortedByBytes } from '../core/order.js';
import { getReferrer } from '../oci/layout/layout-content.js';
import {
  type ManifestFacts,
  isManifestType,
  isNonDistributable,
  readManifestFacts,
} from '../oci/layout/layout-manifest.js';
import { readLimited } from '../oci/image/read-limited.js';
import { type Descriptor, manifestMediaTypes, mediaTypes, maxManifestBytes } from '../oci/image/types.js';
import { RegistryContents } from './registry-contents.js';
import { isRepositoryName, isTag, toRepositoryName } from '../oci/registry/registry-names.js';
import { openRegistryStore, readPiece } from './registry-store.js';
import { StorageFullError, StorageLimit } from './registry-limit.js';
import { type Upload, Uploads } from './registry-uploads.js';
import { HostRule, isCrossSite, isLoopbackHost } from './server/host-rule.js';
import { PasswordFile } from './server/htpasswd.js';
import {
  type RequestRefusal,
  type ServerCertificate,
  closeHttpServer,
  createHttpServer,
  replaceCertificate,
} from './server/http-server.js';
import { listenOn, shownAddress, getUrl } from './server/listening.js';

/** Blobs up to this size are read whole instead of streamed. */
const smallBlobBytes = 64 * 1024;
/** How long `close` waits for requests that are under way. */
const closeGraceMs = 5_000;
/** Names of repositories may have slashes, so the shortest that leaves a whole endpoint is taken. */
const endpointPattern =
  /^\/v2\/(.+?)\/(?:(blobs\/uploads)(?:\/([^/]*))?|(manifests|blobs|referrers)\/([^/]+)|(tags\/list))$/;
/** How much of the body of a refused request is read. */
const maxDrainedBytes = 64 * 1024 * 1024;
/** Tags that one manifest can be pushed under at once. */
const maxTagsPerPush = 100;

export interface RegistryOptions extends CancelOptions {
  /** An OCI image layout, or a new or empty directory that is made one; or an archive set, for reading only. */
  directory: string;
  /** Directories of the archive sets that this one is based on. */
  archiveBases?: readonly string[];
  /** What the archive set must be; a directory that is no archive set is refused then. */
  archiveProof?: ArchiveProof;
  /** Address to listen on; loopback when left out. Others need `htpasswd` or `insecureListen`. */
  host?: string;
  /** Port to listen on; any free one when left out or 0. */
  port?: number;
  /** Certificate chain and key, PEM; plain HTTP without. */
  tls?: ServerCertificate;
  /** Users with bcrypt hashes of their passwords; everybody may read and write without. */
  htpasswd?: string | undefined;
  /** Allows listening beyond loopback without `htpasswd`. */
  insecureListen?: boolean | undefined;
  /** Takes no changes. */
  readOnly?: boolean | undefined;
  /** Bytes that blobs and uploads may take together; no limit of its own when left out. */
  maxSize?: number | undefined;
  /** Names that requests may call the registry by, then checked on every address; see HostRule. */
  allowedHosts?: readonly string[] | undefined;
  maxConnections?: number | undefined;
  logger?: Logger;
}

export interface Registry {
  /** `http://127.0.0.1:40001`, without a final slash. */
  readonly url: string;
  readonly port: number;
  /** Shows new connections another certificate. Throws OpmateError INVALID. */
  replaceCertificate(certificate: ServerCertificate): void;
  /** Stops listening, finishes what is under way, and removes unfinished uploads. */
  close(): Promise<void>;
}

/**
 * Serves an OCI image layout directory over the distribution API (distribution-spec 1.1), for reading and
 * writing, or the images of an archive set, for reading. Which index entry belongs to which repository is said at RegistryContents; the default repository
 * is named after the directory. An image needs its blobs to be there; an index is taken without some of its
 * images. When `signal` fires the registry closes.
 * Throws OpmateError NOT_FOUND, INVALID, UNSUPPORTED or IO, and CANCELLED.
 */
export async function startRegistry(options: RegistryOptions): Promise<Registry> {
  const { directory, host = '127.0.0.1', port = 0, tls, logger = silentLogger, signal } = options;
  throwIfCancelled(signal);
  if (options.htpasswd === undefined && options.insecureListen !== true && !isLoopbackHost(host)) {
    throw new UsageError(
      `listen ${shownAddress({ host, port })}: not a loopback address, and no authentication is configured`,
      { hint: 'add --htpasswd FILE, or allow everybody with --insecure-listen' },
    );
  }
  const passwords = options.htpasswd === undefined ? undefined : await PasswordFile.open(options.htpasswd);
  const store = await openRegistryStore(directory, options.archiveBases ?? [], logger, options.archiveProof);
  const contents = new RegistryContents(store, toRepositoryName(basename(await realpath(directory))), logger);
  const layout = options.readOnly === true ? undefined : store.layout;
  const limit =
    layout === undefined || options.maxSize === undefined
      ? undefined
      : await StorageLimit.open(layout, options.maxSize);
  const uploads = layout && new Uploads(layout, limit);
  const handler = new RequestHandler({ contents, uploads, limit, passwords, logger });
  const { allowedHosts = [], maxConnections } = options;
  const server = createHttpServer({
    handle: (request, response) => handler.handle(request, response),
    refuse: sendRefusal,
    hosts: new HostRule({ names: [host, ...allowedHosts], everywhere: allowedHosts.length > 0 }),
    certificate: tls,
    // A large upload may take longer than any fixed time; a connection that stands still may not.
    requestMs: 0,
    maxConnections,
    logger,
  });
  const actualPort = await listenOn(server, { host, port });
  server.on('error', (error) => logger.log('error', `${host}:${port}: ${getMessage(error)}`));

  let closing: Promise<void> | undefined;
  let unwatch = (): void => undefined;
  const shutDown = async (): Promise<void> => {
    unwatch();
    await closeHttpServer(server, closeGraceMs);
    await uploads?.dropAll();
  };
  const close = (): Promise<void> => (closing ??= shutDown());
  unwatch = onAbort(signal, () => {
    void close().catch((error: unknown) => logger.log('error', getMessage(error)));
  });
  return {
    url: getUrl(server, host, tls !== undefined),
    port: actualPort,
    replaceCertificate: (certificate) => replaceCertificate(server, certificate),
    close,
  };
}

/** An answer other than success: an error code of the distribution specification with its status. */
class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly headers: Record<string, string>;
  constructor(status: number, code: string, message: string, headers: Record<string, string> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

interface Call {
  request: IncomingMessage;
  response: ServerResponse;
  method: string;
  query: URLSearchParams;
}

interface RequestHandlerOptions {
  contents: RegistryContents;
  /** None where the content is for reading only. */
  uploads: Uploads | undefined;
  limit: StorageLimit | undefined;
  passwords: PasswordFile | undefined;
  logger: Logger;
}

class RequestHandler {
  readonly #contents: RegistryContents;
  readonly #uploads: Uploads | undefined;
  readonly #limit: StorageLimit | undefined;
  readonly #passwords: PasswordFile | undefined;
  readonly #logger: Logger;

  constructor({ contents, uploads, limit, passwords, logger }: RequestHandlerOptions) {
    this.#contents = contents;
    this.#uploads = uploads;
    this.#limit = limit;
    this.#passwords = passwords;
    this.#logger = logger;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = request;
    response.setHeader('Docker-Distribution-API-Version', 'registry/2.0');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    try {
      await this.#admit(request, method);
      const { path, query } = splitUrl(url);
      await this.#route(path, { request, response, method, query });
    } catch (error) {
      this.#refuse(error, request, response);
    }
    this.#logger.log('debug', `${method} ${url}`, { status: response.statusCode });
  }

  /** Throws a Refusal for a request of nobody who is known, and for a change that another site asks for. */
  async #admit(request: IncomingMessage, method: string): Promise<void> {
    if (this.#passwords !== undefined) {
      const verdict = await this.#passwords.check(request.headers.authorization);
      if (verdict === 'busy') {
        throw new Refusal(429, 'TOOMANYREQUESTS', 'too many passwords are being checked');
      }
      if (verdict === 'wrong') {
        throw new Refusal(401, 'UNAUTHORIZED', 'authentication required', {
          'WWW-Authenticate': 'Basic realm="opmate", charset="UTF-8"',
        });
      }
    }
    if (method !== 'GET' && method !== 'HEAD' && isCrossSite(request)) {
      throw new Refusal(403, 'DENIED', 'changes that another site asks for are refused');
    }
  }

  async #route(path: string, call: Call): Promise<void> {
    if (path === '/v2/' || path === '/v2') {
      allow(call, 'GET', 'HEAD');
      return sendJson(call, 200, {});
    }
    if (path === '/v2/_catalog') {
      allow(call, 'GET', 'HEAD');
      const page = paginate(await this.#contents.listRepositories(), call, path);
      return sendJson(call, 200, { repositories: page });
    }
    const match = endpointPattern.exec(path);
    if (match === null) throw new Refusal(404, 'UNSUPPORTED', `${path}: no such endpoint`);
    const [, name = '', uploads, uploadId, kind, reference = '', tags] = match;
    if (!isRepositoryName(name)) {
      throw new Refusal(400, 'NAME_INVALID', `${JSON.stringify(name.slice(0, 300))}: not a repository name`);
    }
    const target = this.#uploads;
    const isReading = uploads === undefined && (call.method === 'GET' || call.method === 'HEAD');
    if (target === undefined && !isReading) {
      const what = this.#contents.store.layout === undefined ? 'an archive is' : 'is';
      throw new Refusal(405, 'UNSUPPORTED', `${name}: ${what} served for reading only`, {
        Allow: 'GET, HEAD',
      });
    }
    if (uploads !== undefined && target !== undefined) {
      return await (uploadId
        ? this.#upload(target, call, name, uploadId)
        : this.#startUpload(target, call, name));
    }
    if (tags !== undefined) return await this.#listTags(call, name, path);
    if (kind === 'manifests') return await this.#manifest(call, name, reference);
    if (kind === 'blobs') return await this.#blob(call, name, requireDigest(reference));
    return await this.#referrers(call, name, requireDigest(reference));
  }

  async #manifest(call: Call, name: string, reference: string): Promise<void> {
    allow(call, 'GET', 'HEAD', 'PUT', 'DELETE');
    if (reference.includes(':')) requireDigest(reference);
    if (call.method === 'PUT') return await this.#putManifest(call, name, reference);
    const byDigest = reference.includes(':');
    if (call.method === 'DELETE') {
      const done = byDigest
        ? await this.#contents.deleteManifest(name, reference)
        : await this.#contents.deleteTag(name, reference);
      if (!done) throw await this.#unknownManifest(name, reference);
      return send(call, 202);
    }
    const contents = await this.#contents.find(name);
    const digest = byDigest ? reference : contents?.tags.get(reference);
    const stored = digest === undefined ? undefined : contents?.manifests.get(digest);
    const bytes = stored && (await this.#contents.readManifest(stored.descriptor.digest));
    if (stored === undefined || bytes === undefined) throw await this.#unknownManifest(name, reference);
    // An index may say anything; what browsers take for a page is not sent as one.
    const { mediaType } = isManifestType(stored.descriptor) ? stored.descriptor : stored.facts;
    const type = manifestMediaTypes.includes(mediaType) ? mediaType : 'application/octet-stream';
    send(call, 200, { 'Content-Type': type, 'Docker-Content-Digest': stored.descriptor.digest }, bytes);
  }

  async #unknownManifest(name: string, reference: string): Promise<Refusal> {
    const known = (await this.#contents.find(name)) !== undefined;
    return known
      ? new Refusal(404, 'MANIFEST_UNKNOWN', `${name}: ${reference}: manifest unknown`)
      : new Refusal(404, 'NAME_UNKNOWN', `${name}: repository unknown`);
  }

  async #putManifest(call: Call, name: string, reference: string): Promise<void> {
    const bytes = await readBody(call, maxManifestBytes);
    const byDigest = reference.includes(':');
    const promised = byDigest ? reference : call.query.get('digest');
    if (promised !== null) requireDigest(promised);
    const digest = computeDigest(bytes, promised === null ? 'sha256' : getAlgorithm(promised));
    if (promised !== null && digest !== promised) {
      throw new Refusal(400, 'DIGEST_INVALID', `${name}: ${promised}: the manifest has digest ${digest}`);
    }
    if (!byDigest) requireTag(reference);
    const extraTags = call.query.getAll('tag');
    if (extraTags.length > maxTagsPerPush) throw new Refusal(414, 'MANIFEST_INVALID', 'too many tags');
    extraTags.forEach(requireTag);
    let facts: ManifestFacts;
    try {
      facts = readManifestFacts(bytes, `${name}: ${reference}`);
    } catch (error) {
      throw new Refusal(400, 'MANIFEST_INVALID', getMessage(error));
    }
    const header = call.request.headers['content-type']?.split(';')[0]?.trim().toLowerCase();
    const mediaType = header || facts.mediaType;
    if (
      facts.declaredMediaType !== undefined &&
      facts.declaredMediaType.toLowerCase() !== mediaType.toLowerCase()
    ) {
      throw new Refusal(
        400,
        'MANIFEST_INVALID',
        `${name}: ${reference}: its mediaType is ${facts.declaredMediaType}, its Content-Type ${mediaType}`,
      );
    }
    if (!manifestMediaTypes.includes(mediaType)) {
      const shown = JSON.stringify(mediaType.slice(0, 200));
      const expected = manifestMediaTypes.join(', ');
      throw new Refusal(
        400,
        'MANIFEST_INVALID',
        `${name}: ${reference}: unsupported media type ${shown}, expected ${expected}`,
      );
    }
    await this.#requireReferences(name, reference, facts);
    await this.#limit?.take(bytes.length);
    const tags = byDigest ? [...new Set(extraTags)] : [...new Set([reference, ...extraTags])];
    const descriptor = { mediaType, digest, size: bytes.length };
    await this.#contents.putManifest(name, tags, descriptor, bytes, facts);
    send(call, 201, {
      Location: `/v2/${name}/manifests/${digest}`,
      'Docker-Content-Digest': digest,
      ...(facts.subject === undefined ? {} : { 'OCI-Subject': facts.subject }),
      ...(extraTags.length === 0 ? {} : { 'OCI-Tag': extraTags.join(', ') }),
    });
  }

  /**
   * Content of any repository will do: it is there for whoever pulls this manifest. What an index lists may be
   * missing (distribution-spec, "Pushing Manifests", leaves that to the registry): a mirror of some platforms
   * keeps the index, whose digest is pinned and signed, without the images of the others.
   */
  async #requireReferences(name: string, reference: string, facts: ManifestFacts): Promise<void> {
    for (const { digest } of facts.blobs.filter((blob) => !isNonDistributable(blob))) {
      if ((await this.#contents.store.claimBlob(digest)) === undefined) {
        throw new Refusal(
          400,
          'MANIFEST_BLOB_UNKNOWN',
          `${name}: ${reference}: ${digest} has not been pushed`,
        );
      }
    }
  }

  async #blob(call: Call, name: string, digest: string): Promise<void> {
    allow(call, 'GET', 'HEAD', 'DELETE');
    const unknown = () => new Refusal(404, 'BLOB_UNKNOWN', `${name}: ${digest}: blob unknown`);
    if (call.method === 'DELETE') {
      if (!(await this.#contents.deleteBlob(name, digest))) throw unknown();
      return send(call, 202);
    }
    // Who asks without wanting the content is about to push what refers to it.
    const size =
      call.method === 'HEAD'
        ? await this.#contents.claimBlob(name, digest)
        : await this.#contents.blobSize(name, digest);
    if (size === undefined) throw unknown();
    const headers: Record<string, string> = {
      'Content-Type': 'application/octet-stream',
      'Docker-Content-Digest': digest,
      'Accept-Ranges': 'bytes',
    };
    const range = call.method === 'GET' ? parseRange(call.request.headers.range, size) : undefined;
    if (range === 'unsatisfiable') {
      throw new Refusal(416, 'SIZE_INVALID', `${name}: ${digest}: range not satisfiable`, {
        'Content-Range': `bytes */${size}`,
      });
    }
    const { start, end } = range ?? { start: 0, end: size - 1 };
    if (range !== undefined) headers['Content-Range'] = `bytes ${start}-${end}/${size}`;
    const status = range === undefined ? 200 : 206;
    const length = end - start + 1;
    const { file, offset } = this.#contents.store.locate(digest);
    if (call.method === 'HEAD') {
      call.response.writeHead(status, { ...headers, 'Content-Length': length }).end();
    } else if (size <= smallBlobBytes) {
      const bytes = await readPiece(file, offset + start, length);
      if (bytes === undefined) throw unknown();
      send(call, status, headers, bytes);
    } else {
      call.response.writeHead(status, { ...headers, 'Content-Length': length });
      // A client that goes away in the middle is its own affair.
      const place = { start: offset + start, end: offset + end };
      const content = createReadStream(file, { ...place, highWaterMark: 256 * 1024 });
      await pipeline(content, call.response).catch(() => undefined);
    }
  }

  async #startUpload(uploads: Uploads, call: Call, name: string): Promise<void> {
    allow(call, 'POST');
    const { query } = call;
    const mount = query.get('mount');
    if (
      mount !== null &&
      (await this.#contents.mountBlob(name, requireDigest(mount), query.get('from') ?? undefined))
    ) {
      return sendCreated(call, name, mount);
    }
    const algorithm = requireAlgorithm(query.get('digest-algorithm') ?? 'sha256');
    const digest = query.get('digest');
    if (digest === null) {
      const upload = uploads.start(name, algorithm);
      if (upload === undefined) throw new Refusal(429, 'TOOMANYREQUESTS', 'too many uploads are under way');
      return send(call, 202, { ...getLocation(upload), 'Docker-Upload-UUID': upload.id });
    }
    requireDigest(digest);
    await uploads.once(name, getAlgorithm(digest), async (upload) => {
      await upload.append(iterateBody(call));
      await this.#finish(upload, digest);
    });
    return sendCreated(call, name, digest);
  }

  async #upload(uploads: Uploads, call: Call, name: string, id: string): Promise<void> {
    allow(call, 'GET', 'PATCH', 'PUT', 'DELETE');
    await uploads.use(name, id, async (upload) => {
      if (upload === undefined)
        throw new Refusal(404, 'BLOB_UPLOAD_UNKNOWN', `${name}: ${id.slice(0, 80)}: upload unknown`);
      const digest = call.query.get('digest');
      switch (call.method) {
        case 'GET':
          return send(call, 204, { ...getLocation(upload), ...getReceived(upload) });
        case 'DELETE':
          await uploads.drop(id);
          return send(call, 204);
        case 'PATCH':
          await receive(call, upload);
          return send(call, 202, {
            ...getLocation(upload),
            ...getReceived(upload),
            'Docker-Upload-UUID': id,
          });
        default:
          if (digest === null) throw new Refusal(400, 'DIGEST_INVALID', `${name}: ${id}: no digest given`);
          requireDigest(digest);
          await receive(call, upload);
          try {
            await this.#finish(upload, digest);
          } finally {
            await uploads.drop(id);
          }
          return sendCreated(call, name, digest);
      }
    });
  }

  async #finish(upload: Upload, promised: string): Promise<void> {
    const { path, digest } = await upload.finish(getAlgorithm(promised));
    if (digest !== promised) {
      throw new Refusal(
        400,
        'DIGEST_INVALID',
        `${upload.repository}: ${promised}: the content has digest ${digest}`,
      );
    }
    await this.#contents.adoptBlob(upload.repository, digest, path);
  }

  async #listTags(call: Call, name: string, path: string): Promise<void> {
    allow(call, 'GET', 'HEAD');
    const contents = await this.#contents.find(name);
    if (contents === undefined) throw new Refusal(404, 'NAME_UNKNOWN', `${name}: repository unknown`);
    const page = paginate(sortedByBytes(contents.tags.keys()), call, path);
    sendJson(call, 200, { name, tags: page });
  }

  async #referrers(call: Call, name: string, digest: string): Promise<void> {
    allow(call, 'GET', 'HEAD');
    const contents = await this.#contents.find(name);
    const artifactType = call.query.get('artifactType');
    const matches: Descriptor[] = [];
    for (const { descriptor, facts } of contents?.manifests.values() ?? []) {
      if (facts.subject !== digest) continue;
      if (artifactType && facts.artifactType !== artifactType) continue;
      matches.push(getReferrer(descriptor, facts));
    }
    matches.sort((a, b) => compareBytes(a.digest, b.digest));
    const index = { schemaVersion: 2, mediaType: mediaTypes.ociIndex, manifests: matches };
    const headers: Record<string, string> = { 'Content-Type': mediaTypes.ociIndex };
    if (artifactType) headers['OCI-Filters-Applied'] = 'artifactType';
    send(call, 200, headers, Buffer.from(JSON.stringify(index)));
  }

  #refuse(error: unknown, request: IncomingMessage, response: ServerResponse): void {
    const gone = request.destroyed && !request.complete;
    const refusal =
      error instanceof Refusal
        ? error
        : error instanceof StorageFullError
          ? new Refusal(403, 'DENIED', error.message)
          : undefined;
    if (refusal === undefined && !gone) {
      this.#logger.log('error', `${request.method} ${request.url}: ${getMessage(error)}`);
    }
    if (gone || response.headersSent) {
      response.destroy();
      return;
    }
    const problem = systemCode(error) ?? 'internal error';
    const { status, code, message, headers } = refusal ?? {
      status: 500,
      code: 'UNKNOWN',
      message: problem,
      headers: {},
    };
    sendError(request, response, { status, code, message, headers });
    if (!request.complete) drain(request);
  }
}

/** Answers a request that is refused before it is looked at. */
function sendRefusal(refusal: RequestRefusal, request: IncomingMessage, response: ServerResponse): void {
  const { status, message, hint } = refusal;
  response.setHeader('X-Content-Type-Options', 'nosniff');
  sendError(request, response, { status, code: 'DENIED', message: `${message}; ${hint}`, headers: {} });
}

function sendError(
  { method }: IncomingMessage,
  response: ServerResponse,
  { status, code, message, headers }: Pick<Refusal, 'status' | 'code' | 'message' | 'headers'>,
): void {
  const body = Buffer.from(JSON.stringify({ errors: [{ code, message }] }));
  response.writeHead(status, {
    ...headers,
    'Content-Type': 'application/json',
    'Content-Length': body.length,
  });
  response.end(method === 'HEAD' ? undefined : body);
}

function splitUrl(url: string): { path: string; query: URLSearchParams } {
  const mark = url.indexOf('?');
  const raw = mark < 0 ? url : url.slice(0, mark);
  try {
    return { path: decodeURIComponent(raw), query: new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1)) };
  } catch {
    throw new Refusal(400, 'UNSUPPORTED', 'the path has a malformed escape');
  }
}

function allow(call: Call, ...methods: string[]): void {
  if (methods.includes(call.method)) return;
  throw new Refusal(405, 'UNSUPPORTED', `${call.method} is not supported here`, {
    Allow: methods.join(', '),
  });
}

function requireDigest(text: string): string {
  if (isDigest(text)) return text;
  throw new Refusal(
    400,
    'DIGEST_INVALID',
    `${text.slice(0, 200)}: not a digest, or one of an algorithm that is not supported`,
  );
}

function requireTag(text: string): void {
  if (!isTag(text)) throw new Refusal(400, 'MANIFEST_INVALID', `${text.slice(0, 300)}: not a tag`);
}

function getAlgorithm(digest: string): DigestAlgorithm {
  return parseDigest(digest).algorithm;
}

function requireAlgorithm(text: string): DigestAlgorithm {
  if (text === 'sha256' || text === 'sha384' || text === 'sha512') return text;
  throw new Refusal(400, 'DIGEST_INVALID', `${text.slice(0, 80)}: digest algorithm is not supported`);
}

/** Appends the body to an upload, after its place has been checked: a refused chunk changes nothing. */
async function receive(call: Call, upload: Upload): Promise<void> {
  const { 'content-range': range, 'content-length': length } = call.request.headers;
  const body = iterateBody(call);
  if (range === undefined) return await upload.append(body);
  const match = /^(\d+)-(\d+)$/.exec(range);
  const start = Number(match?.[1]);
  const expected = Number(match?.[2]) - start + 1;
  if (match === null || expected < 1) {
    throw new Refusal(400, 'BLOB_UPLOAD_INVALID', `${range.slice(0, 80)}: Content-Range is not START-END`);
  }
  if (start !== upload.offset) {
    throw new Refusal(
      416,
      'BLOB_UPLOAD_INVALID',
      `chunk starts at ${start}, the next byte is ${upload.offset}`,
      {
        ...getLocation(upload),
        ...getReceived(upload),
      },
    );
  }
  if (length !== undefined && Number(length) !== expected) {
    throw new Refusal(400, 'SIZE_INVALID', `Content-Length is ${length}, Content-Range ${range}`);
  }
  await upload.append(limited(body, expected));
  if (upload.offset !== start + expected) {
    throw new Refusal(
      400,
      'SIZE_INVALID',
      `chunk has ${upload.offset - start} bytes, Content-Range is ${range}`,
    );
  }
}

async function* limited(body: AsyncIterable<Buffer>, length: number): AsyncGenerator<Buffer> {
  let seen = 0;
  for await (const chunk of body) {
    seen += chunk.length;
    if (seen > length)
      throw new Refusal(400, 'SIZE_INVALID', `chunk is longer than its Content-Range of ${length} bytes`);
    yield chunk;
  }
}

/** The body; whoever stops reading it early leaves the connection usable for an answer. */
function iterateBody(call: Call): AsyncIterable<Buffer> {
  return call.request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
}

/** Reads away what a refused request still sends, so that its answer arrives; an endless one is cut off. */
function drain(request: IncomingMessage): void {
  let left = maxDrainedBytes;
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.destroy();
  });
}

async function readBody(call: Call, limit: number): Promise<Buffer> {
  const tooLarge = () => new Refusal(413, 'MANIFEST_INVALID', `manifest is larger than ${limit} bytes`);
  if (Number(call.request.headers['content-length'] ?? 0) > limit) throw tooLarge();
  try {
    return await readLimited(iterateBody(call), limit, 'manifest');
  } catch (error) {
    throw error instanceof LimitError ? tooLarge() : error;
  }
}

/**
 * One range of bytes (RFC 9110, section 14). Several ranges at once, and other units, are answered with the
 * whole blob, as that RFC allows.
 */
function parseRange(
  header: string | undefined,
  size: number,
): { start: number; end: number } | 'unsatisfiable' | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? '');
  if (match === null) return undefined;
  const [, first = '', last = ''] = match;
  if (first === '' && last === '') return undefined;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  return start > end ? 'unsatisfiable' : { start, end };
}

/** The names that `n` and `last` ask for; sets the Link header when there are more. */
function paginate(names: readonly string[], call: Call, path: string): string[] {
  const last = call.query.get('last');
  const wanted = call.query.get('n');
  if (wanted !== null && !/^\d{1,9}$/.test(wanted)) {
    throw new Refusal(400, 'UNSUPPORTED', `${wanted.slice(0, 80)}: n is not a number of results`);
  }
  const rest = last === null ? [...names] : names.filter((name) => compareBytes(name, last) > 0);
  const limit = wanted === null ? rest.length : Number(wanted);
  const page = rest.slice(0, limit);
  const end = page.at(-1);
  if (end !== undefined && rest.length > limit) {
    const query = new URLSearchParams({ last: end, n: String(limit) });
    call.response.setHeader('Link', `<${path}?${query}>; rel="next"`);
  }
  return page;
}

function getLocation(upload: Upload): Record<string, string> {
  return { Location: `/v2/${upload.repository}/blobs/uploads/${upload.id}` };
}

/** Both ends count, so nothing received yet looks like one byte: `0-0`, as other registries have it. */
function getReceived(upload: Upload): Record<string, string> {
  return { Range: `0-${Math.max(0, upload.offset - 1)}` };
}

function sendCreated(call: Call, name: string, digest: string): void {
  send(call, 201, { Location: `/v2/${name}/blobs/${digest}`, 'Docker-Content-Digest': digest });
}

function sendJson(call: Call, status: number, value: unknown): void {
  send(call, status, { 'Content-Type': 'application/json' }, Buffer.from(JSON.stringify(value)));
}

function send(call: Call, status: number, headers: Record<string, string> = {}, body?: Buffer): void {
  const length = status === 204 ? {} : { 'Content-Length': body?.length ?? 0 };
  call.response.writeHead(status, { ...headers, ...length });
  call.response.end(call.method === 'HEAD' ? undefined : body);
}
