import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { TransportResponse } from '../transport/transport.js';
import type { RegistryRequester } from './registry-request.js';

/** Pages of a list that are followed. */
const maxPagesOfList = 1_000;
/** Bytes of one page. */
const maxPageBytes = 4 * 1024 * 1024;

export type PageOptions = CancelOptions & { maxPages?: number | undefined };

interface Page {
  response: TransportResponse;
  status: number;
  mediaType: string;
  /** Of an answer with status 200. */
  bytes: Buffer;
  document: unknown;
}

/** Goes through a list page by page, by `Link: <…>; rel="next"`, at one origin. `first` is what `send` takes. */
export async function* readPages(
  requester: RegistryRequester,
  first: string,
  subject: string,
  { signal, maxPages = maxPagesOfList }: PageOptions,
): AsyncGenerator<Page> {
  let url: string | undefined = /^https?:/.test(first) ? first : requester.url(first);
  const seen = new Set<string>();
  while (url !== undefined) {
    if (seen.has(url))
      throw new OpmateError('REGISTRY', 'the list leads back to a page that was read', { subject });
    if (seen.size >= maxPages) throw new LimitError(`more than ${maxPages} pages`, { subject });
    seen.add(url);
    const response = await requester.send('GET', url, 'pull', { signal });
    const mediaType = response.headers.get('content-type')?.split(';')[0]?.trim() ?? '';
    const page: Page = {
      response,
      status: response.status,
      mediaType,
      bytes: Buffer.alloc(0),
      document: undefined,
    };
    if (response.status === 200) {
      try {
        page.bytes = await response.read(maxPageBytes, `${subject}: the answer`);
      } catch (error) {
        throwIfCancelled(signal);
        throw error;
      }
      try {
        page.document = JSON.parse(page.bytes.toString('utf8'));
      } catch {
        // The reader of the page refuses it.
      }
    }
    yield page;
    const next = /<([^>]*)>\s*;[^,]*\brel="?next"?/i.exec(response.headers.get('link') ?? '')?.[1];
    url = next === undefined ? undefined : nextPage(url, next, subject);
  }
}

function nextPage(current: string, link: string, subject: string): string {
  if (!URL.canParse(link, current))
    throw new OpmateError('REGISTRY', 'the link to the next page is not a URL', { subject });
  const next = new URL(link, current);
  if (next.origin === new URL(current).origin) return next.href;
  throw new OpmateError('UNSAFE', `the list goes on at another origin (${next.origin})`, { subject });
}
