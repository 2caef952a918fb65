import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { TransportResponse } from '../transport/transport.js';
import type { RegistryRequester } from './registry-request.js';

const defaultMaxPages = 1_000;
const maxPageBytes = 4 * 1024 * 1024;

export type PageOptions = CancelOptions & { maxPages?: number | undefined };

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
  { signal, maxPages = defaultMaxPages }: PageOptions,
): AsyncGenerator<Page> {
  let url: string | undefined = /^https?:/.test(first) ? first : requester.url(first);
  const seen = new Set<string>();
  while (url !== undefined) {
    if (seen.has(url))
      throw new OpmateError('REGISTRY', 'the list links back to an earlier page', { subject });
    if (seen.size >= maxPages) throw new LimitError(`more than ${maxPages} pages`, { subject });
    seen.add(url);
    const response = await requester.send('GET', url, 'pull', { signal });
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
    const next = /<([^>]*)>\s*;[^,]*\brel="?next"?/i.exec(response.headers.get('link') ?? '')?.[1];
    url = next === undefined ? undefined : nextPage(url, next, subject);
  }
}

function nextPage(current: string, link: string, subject: string): string {
  if (!URL.canParse(link, current))
    throw new OpmateError('REGISTRY', 'invalid URL of the next page', { subject });
  const next = new URL(link, current);
  if (next.origin === new URL(current).origin) return next.href;
  throw new OpmateError('UNSAFE', `next page at another origin (${next.origin}) refused`, { subject });
}
