import type { HeaderField } from './hpack.js';

/** Header fields of a request by name; repeated ones are joined by commas. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>;

const pseudoFields = new Set([':method', ':scheme', ':authority', ':path']);
const connectionFields = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

/** Converts decoded fields to request headers; undefined where they are malformed. (Source: RFC 9113, sections 8.2 and 8.3.) */
export function toRequestHeaders(fields: readonly HeaderField[]): RequestHeaders | undefined {
  const headers = Object.create(null) as Record<string, string | undefined>;
  let isRegular = false;
  for (const { name, value, isValid } of fields) {
    if (!isValid) return undefined;
    if (name.startsWith(':')) {
      if (isRegular || !pseudoFields.has(name) || name in headers) return undefined;
    } else {
      isRegular = true;
      if (connectionFields.has(name) || (name === 'te' && value !== 'trailers')) return undefined;
    }
    const earlier = headers[name];
    headers[name] = earlier === undefined ? value : `${earlier}, ${value}`;
  }
  const { ':method': method, ':scheme': scheme, ':path': path } = headers;
  if (method === undefined || method === '' || scheme === undefined || path === undefined || path === '') {
    return undefined;
  }
  return headers;
}
