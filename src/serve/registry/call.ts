import type { IncomingMessage, ServerResponse } from 'node:http';
import { isDigest } from '../../core/digest.js';
import { isTag } from '../../oci/registry/registry-names.js';
import { Refusal } from '../server/refusal.js';
import type { Repositories } from './repositories.js';
import type { StorageLimit } from './storage-limit.js';
import type { Uploads } from './uploads.js';

/** A refusal with an error code of the distribution specification. */
export class RegistryRefusal extends Refusal {
  readonly code: string;
  constructor(status: number, code: string, message: string, headers: Record<string, string> = {}) {
    super(status, message, headers);
    this.code = code;
  }
}

/** Content of a registry, and the place of pushed content. */
export interface ServedContent {
  repositories: Repositories;
  /** Undefined for a read-only registry. */
  uploads: Uploads | undefined;
  limit: StorageLimit | undefined;
}

/** A request to the registry. */
export interface Call extends ServedContent {
  request: IncomingMessage;
  response: ServerResponse;
  method: string;
  query: URLSearchParams;
}

/** Throws RegistryRefusal for other methods. */
export function allow(call: Call, ...methods: string[]): void {
  if (methods.includes(call.method)) return;
  throw new RegistryRefusal(405, 'UNSUPPORTED', `${call.method}: unsupported method`, {
    Allow: methods.join(', '),
  });
}

/** Returns a valid digest. Throws RegistryRefusal for other text. */
export function requireDigest(text: string): string {
  if (isDigest(text)) return text;
  throw new RegistryRefusal(400, 'DIGEST_INVALID', `${text.slice(0, 200)}: invalid or unsupported digest`);
}

/** Throws RegistryRefusal for an invalid tag. */
export function requireTag(text: string): void {
  if (!isTag(text)) throw new RegistryRefusal(400, 'MANIFEST_INVALID', `${text.slice(0, 300)}: invalid tag`);
}

/** Responds with JSON. */
export function sendJson(
  call: Pick<Call, 'response' | 'method'>,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = Buffer.from(JSON.stringify(value));
  send(call, status, { ...headers, 'Content-Type': 'application/json' }, body);
}

/** Responds with a body or none. */
export function send(
  call: Pick<Call, 'response' | 'method'>,
  status: number,
  headers: Record<string, string> = {},
  body?: Buffer,
): void {
  const length = status === 204 ? {} : { 'Content-Length': body?.length ?? 0 };
  call.response.writeHead(status, { ...headers, ...length });
  call.response.end(call.method === 'HEAD' ? undefined : body);
}
