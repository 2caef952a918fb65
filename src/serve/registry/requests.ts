import type { IncomingMessage, ServerResponse } from 'node:http';
import { OpmateError, getMessage, systemCode, systemReason } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { isRepositoryName } from '../../oci/registry/registry-names.js';
import { isCrossSite } from '../server/host-rule.js';
import type { PasswordFile } from '../server/htpasswd.js';
import type { RequestRefusal } from '../server/http-server.js';
import { splitUrl } from '../server/request-url.js';
import { continueUpload, handleBlob, startUpload } from './blob-requests.js';
import { type Call, RegistryRefusal, type ServedContent, allow, requireDigest, sendJson } from './call.js';
import { handleManifest, listReferrers } from './manifest-requests.js';
import { StorageFullError } from './storage-limit.js';
import { MissingContentError } from '../../oci/layout/layout-store.js';

/** Repository names may have slashes: the shortest that leaves a complete endpoint matches. */
const endpointPattern =
  /^\/v2\/(.+?)\/(?:(blobs\/uploads)(?:\/([^/]*))?|(manifests|blobs|referrers)\/([^/]+)|(tags\/list))$/;
/** Maximum bytes of a refused request that are read. */
const maxDrainedBytes = 64 * 1024 * 1024;

const fullDiskCodes: readonly (string | undefined)[] = ['ENOSPC', 'EDQUOT'];

interface RegistryHandlerOptions extends ServedContent {
  passwords: PasswordFile | undefined;
  logger: Logger;
}

/** Returns the handler of requests of the distribution API. */
export function createRegistryHandler({ passwords, logger, ...content }: RegistryHandlerOptions) {
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = 'GET', url = '/' } = request;
    response.setHeader('Docker-Distribution-API-Version', 'registry/2.0');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    try {
      await authorize(request, method, passwords);
      const { path, query } = splitUrl(url);
      await route(decodePath(path), { ...content, request, response, method, query });
    } catch (error) {
      refuse(error, request, response, { logger, directory: content.repositories.store.content.directory });
    }
    logger.log('debug', `${method} ${url}`, { status: response.statusCode });
  };
}

/** Throws RegistryRefusal for unauthenticated requests and for cross-site changes. */
async function authorize(
  request: IncomingMessage,
  method: string,
  passwords: PasswordFile | undefined,
): Promise<void> {
  if (passwords !== undefined) {
    const verdict = await passwords.check(request.headers.authorization, request.socket.remoteAddress);
    if (verdict === 'busy') {
      throw new RegistryRefusal(429, 'TOOMANYREQUESTS', 'too many concurrent password checks');
    }
    if (verdict === 'wrong') {
      throw new RegistryRefusal(401, 'UNAUTHORIZED', 'authentication required', {
        'WWW-Authenticate': 'Basic realm="opmate", charset="UTF-8"',
      });
    }
  }
  if (method !== 'GET' && method !== 'HEAD' && isCrossSite(request)) {
    throw new RegistryRefusal(403, 'DENIED', 'cross-site changes are not allowed');
  }
}

async function route(path: string, call: Call): Promise<void> {
  const { repositories } = call;
  if (path === '/v2/' || path === '/v2') {
    allow(call, 'GET', 'HEAD');
    return sendJson(call, 200, {});
  }
  if (path === '/v2/_catalog') {
    allow(call, 'GET', 'HEAD');
    const page = paginate(await repositories.listRepositories(), call, path);
    return sendJson(call, 200, { repositories: page });
  }
  const match = endpointPattern.exec(path);
  if (match === null) throw new RegistryRefusal(404, 'UNSUPPORTED', `${path}: unknown endpoint`);
  const [, name = '', pushed, uploadId, kind, reference = '', tags] = match;
  if (!isRepositoryName(name)) {
    throw new RegistryRefusal(
      400,
      'NAME_INVALID',
      `${JSON.stringify(name.slice(0, 300))}: invalid repository name`,
    );
  }
  const isReading = pushed === undefined && (call.method === 'GET' || call.method === 'HEAD');
  if (call.uploads === undefined && !isReading) {
    const served = repositories.store.layout === undefined ? 'an archive is' : 'is';
    throw new RegistryRefusal(405, 'UNSUPPORTED', `${name}: ${served} served read-only`, {
      Allow: 'GET, HEAD',
    });
  }
  if (call.uploads !== undefined && pushed !== undefined) {
    return await (uploadId
      ? continueUpload(call, call.uploads, name, uploadId)
      : startUpload(call, call.uploads, name));
  }
  if (tags !== undefined) return await listTags(call, name, path);
  if (kind === 'manifests') return await handleManifest(call, name, reference);
  if (kind === 'blobs') return await handleBlob(call, name, requireDigest(reference));
  return await listReferrers(call, name, requireDigest(reference));
}

async function listTags(call: Call, name: string, path: string): Promise<void> {
  allow(call, 'GET', 'HEAD');
  const contents = await call.repositories.find(name);
  if (contents === undefined) throw new RegistryRefusal(404, 'NAME_UNKNOWN', `${name}: repository unknown`);
  const page = paginate(sortedByBytes(contents.tags.keys()), call, path);
  sendJson(call, 200, { name, tags: page });
}

function refuse(
  error: unknown,
  request: IncomingMessage,
  response: ServerResponse,
  { logger, directory }: { logger: Logger; directory: string },
): void {
  const gone = request.destroyed && !request.complete;
  const cause = error instanceof OpmateError ? error.cause : error;
  let refusal = new RegistryRefusal(500, 'UNKNOWN', 'internal error');
  if (error instanceof RegistryRefusal) refusal = error;
  else if (error instanceof StorageFullError) refusal = new RegistryRefusal(403, 'DENIED', error.message);
  else if (error instanceof MissingContentError)
    refusal = new RegistryRefusal(400, 'MANIFEST_BLOB_UNKNOWN', error.message);
  else if (fullDiskCodes.includes(systemCode(cause))) {
    const problem = systemReason(cause);
    logger.log('error', `${directory}: ${problem} (free disk space, or run api.collectGarbage ${directory})`);
    refusal = new RegistryRefusal(507, 'DENIED', problem);
  } else if (!gone) logger.log('error', `${request.method} ${request.url}: ${getMessage(error)}`);
  if (gone || response.headersSent) return void response.destroy();
  sendRefusal(request, response, refusal);
  if (!request.complete) drain(request);
}

/** Responds to a request that the server refuses. */
export function refuseRegistryRequest(
  refusal: RequestRefusal,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { status, message, hint } = refusal;
  response.setHeader('X-Content-Type-Options', 'nosniff');
  sendRefusal(request, response, new RegistryRefusal(status, 'DENIED', `${message}; ${hint}`));
}

function sendRefusal(
  { method = 'GET' }: IncomingMessage,
  response: ServerResponse,
  { status, code, message, headers }: RegistryRefusal,
): void {
  sendJson({ method, response }, status, { errors: [{ code, message }] }, headers);
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    throw new RegistryRefusal(400, 'UNSUPPORTED', 'invalid escape in path');
  }
}

/** Discards the rest of a refused request, so that the client receives the response; limits endless ones. */
function drain(request: IncomingMessage): void {
  let left = maxDrainedBytes;
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.destroy();
  });
  request.resume();
}

/** Returns the page of names that `n` and `last` select; sets the Link header if there are more. */
function paginate(names: readonly string[], call: Call, path: string): string[] {
  const last = call.query.get('last');
  const size = call.query.get('n');
  if (size !== null && !/^\d{1,9}$/.test(size)) {
    throw new RegistryRefusal(400, 'UNSUPPORTED', `n: expected a number, got ${size.slice(0, 80)}`);
  }
  const rest = last === null ? [...names] : names.filter((name) => compareBytes(name, last) > 0);
  const limit = size === null ? rest.length : Number(size);
  const page = rest.slice(0, limit);
  const end = page.at(-1);
  if (end !== undefined && rest.length > limit) {
    const query = new URLSearchParams({ last: end, n: String(limit) });
    call.response.setHeader('Link', `<${path}?${query}>; rel="next"`);
  }
  return page;
}
