import { STATUS_CODES } from 'node:http';
import { isJsonObject, type JsonValue } from '../../document/json.js';
import { redactForeign } from '../../core/errors.js';
import { printableLine } from '../../core/printable.js';
import type { TransportRequest, TransportResponse } from './transport.js';

/** Maximum bytes read of an error body. */
const maxErrorBody = 65_536;

/** Error response of a registry. */
export interface RegistryComplaint {
  /** One line: `registry returned 404 Not Found: manifest unknown`. */
  summary: string;
  /** Text of its body in one line; empty if it has none. */
  detail: string;
  /** Codes of the distribution specification, such as `MANIFEST_UNKNOWN`. */
  codes: string[];
}

/** Returns the subject of messages about a request: `quay.io/ns/name`, or only the host. */
export function formatRequestSubject(request: Pick<TransportRequest, 'url' | 'scope'>): string {
  const { host } = new URL(request.url);
  return request.scope ? `${host}/${request.scope.repository}` : host;
}

/** Reads the error body of a response, `{errors: [{code, message}]}`, at most 64 KiB of it. Never throws for its content. */
export async function readRegistryErrors(response: TransportResponse): Promise<RegistryComplaint> {
  const status = `registry returned ${response.status} ${STATUS_CODES[response.status] ?? ''}`.trimEnd();
  let document: JsonValue;
  try {
    document = JSON.parse((await response.read(maxErrorBody, 'response')).toString('utf8')) as JsonValue;
  } catch {
    return { summary: status, detail: '', codes: [] };
  }
  const list = isJsonObject(document) && Array.isArray(document.errors) ? document.errors : [];
  const errors = list.filter(isJsonObject);
  const texts = errors.flatMap(
    ({ message, code }) => [message, code].find((text) => typeof text === 'string') ?? [],
  );
  const codes = errors.flatMap(({ code }) => (typeof code === 'string' ? oneLine(code, 64) : []));
  const details = texts.slice(0, 3).map((text) => oneLine(String(text), 300));
  return { summary: [status, ...details].join(': '), detail: details.join(': '), codes };
}

/** Returns foreign text for one line of a message: printable, without credentials, at most `limit` characters. */
export function oneLine(text: string, limit: number): string {
  return printableLine(redactForeign(text.replace(/\s+/gu, ' ').trim())).slice(0, limit);
}
