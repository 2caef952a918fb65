import { STATUS_CODES } from 'node:http';
import { isJsonObject, type JsonValue } from '../../document/json.js';
import { redact } from '../../core/errors.js';
import { printableLine } from '../../core/printable.js';
import type { TransportRequest, TransportResponse } from './transport.js';

/** Error bodies are read up to here and no further. */
const maxErrorBody = 65_536;

/** What a registry says in an answer that is not a success. */
export interface RegistryComplaint {
  /** One line: `registry returned 404 Not Found: manifest unknown`. */
  summary: string;
  /** What its body says, in one line; empty where it says nothing. */
  detail: string;
  /** Codes of the distribution specification, e.g. `MANIFEST_UNKNOWN`. */
  codes: string[];
}

/** How messages name what a request is for: `quay.io/ns/name`, or the host alone. */
export function formatRequestSubject(request: Pick<TransportRequest, 'url' | 'scope'>): string {
  const { host } = new URL(request.url);
  return request.scope ? `${host}/${request.scope.repository}` : host;
}

/**
 * Reads the error body of an answer, `{errors: [{code, message}]}` or anything else, at most 64 KiB of it.
 * Never throws for what the body holds or how it ends.
 */
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

/** Text of a stranger for one line of a message: printable, without credentials, at most `limit` characters. */
export function oneLine(text: string, limit: number): string {
  return printableLine(redact(text.replace(/\s+/gu, ' ').trim())).slice(0, limit);
}
