import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { TransportRequest, TransportResponse } from '../transport/transport.js';
import type { RegistryRequester } from './registry-request.js';

const defaultMaxPages = 1_000;
const maxPageBytes = 4 * 1024 * 1024;

export type PageOptions = CancelOptions &
  Pick<TransportRequest, 'isOptional'> & { maxPages?: number | undefined };

interface Page {
  response: TransportResponse;
  status: number;
  mediaType: string;
  /** Body of a response with status 200. */
  bytes: Buffer;
  document: unknown;
}

/** Reads a list page by page, by `Link: <…>; rel="next"` at one origin. `first` is a path or URL for `send`. */
export async function* readPages(
  requester: RegistryRequester,
  first: string,
  subject: string,
  { signal, isOptional, maxPages = defaultMaxPages }: PageOptions,
): AsyncGenerator<Page> {
  let url: string | undefined = /^https?:/.test(first) ? first : requester.url(first);
  const seen = new Set<string>();
  while (url !== undefined) {
    if (seen.has(url))
      throw new OpmateError('REGISTRY', 'the list links back to an earlier page', { subject });
    if (seen.size >= maxPages) throw new LimitError(`more than ${maxPages} pages`, { subject });
    seen.add(url);
    const response = await requester.send('GET', url, 'pull', { signal, isOptional });
    const { status, headers } = response;
    const mediaType = headers.get('content-type')?.split(';')[0]?.trim() ?? '';
    const page: Page = { response, status, mediaType, bytes: Buffer.alloc(0), document: undefined };
    if (status === 200) {
      try {
        page.bytes = await response.read(maxPageBytes, `${subject}: response`);
      } catch (error) {
        throwIfCancelled(signal);
        throw error;
      }
      try {
        page.document = JSON.parse(page.bytes.toString('utf8'));
      } catch {
        // Callers refuse a page without document.
      }
    }
    yield page;
    const next = findNextLink(response.headers.get('link') ?? '');
    url = next === undefined ? undefined : nextPage(url, next, subject);
  }
}

const linkParameter = /\s*;\s*([\w!#$%&'*+.^`|~-]+)(?:\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s",;]*)))?/y;

/** Returns the target of the link with the relation `next`. (Source: RFC 8288, 3.) */
function findNextLink(header: string): string | undefined {
  for (const match of header.matchAll(/<([^<>]*)>/g)) {
    linkParameter.lastIndex = match.index + match[0].length;
    for (let found = linkParameter.exec(header); found !== null; found = linkParameter.exec(header)) {
      const [, name = '', quoted, plain = ''] = found;
      const relations = (quoted ?? plain).toLowerCase().split(/\s+/);
      if (name.toLowerCase() === 'rel' && relations.includes('next')) return match[1];
    }
  }
  return undefined;
}

function nextPage(current: string, link: string, subject: string): string {
  if (!URL.canParse(link, current))
    throw new OpmateError('REGISTRY', 'invalid URL of the next page', { subject });
  const next = new URL(link, current);
  if (next.origin === new URL(current).origin) return next.href;
  throw new OpmateError('UNSAFE', `next page at another origin (${next.origin}) refused`, { subject });
}
