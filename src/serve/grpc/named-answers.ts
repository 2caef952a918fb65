import { quoteGo } from '../../document/go-json.js';
import { ContentCatalog } from '../catalogs/content-catalog.js';
import type { CatalogSet, ServedCatalog } from '../catalogs/stored-content.js';
import { type CatalogAnswersOptions, openCatalogAnswers } from './catalog-answers.js';
import type { RegistryAnswers } from './registry-answers.js';
import { StatusError } from './transport/status.js';

/** Answers that stay open until they are released. */
interface AnswersLease {
  answers: RegistryAnswers;
  release(): void;
}

/** Answers by the `:authority` of a call. */
export interface AnswersSet {
  /** Throws StatusError: NOT_FOUND where no catalog has that address, UNAVAILABLE where its catalog has no content yet. */
  lease(authority: string): Promise<AnswersLease>;
}

interface NamedAnswersOptions extends Pick<CatalogAnswersOptions, 'temporaryDirectory' | 'now' | 'logger'> {
  catalogs: CatalogSet;
  /** Catalogs whose answers are kept open between calls; 8 when left out. */
  maxOpen?: number | undefined;
}

interface Opened {
  hash: string;
  answers: Promise<RegistryAnswers>;
  close: () => Promise<void>;
  users: number;
  isReplaced: boolean;
}

/**
 * Answers of served catalogs, each under host names of its own: `NAME` and `NAME.…`; where there is one catalog only,
 * under any. They are opened with the first call, and again when the content is another; those under way go on with
 * what they began with.
 */
export class NamedAnswers implements AnswersSet {
  readonly #options: NamedAnswersOptions;
  readonly #maxOpen: number;
  /** By name of the catalog, the last used at the end. */
  readonly #opened = new Map<string, Opened>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: NamedAnswersOptions) {
    this.#options = options;
    this.#maxOpen = options.maxOpen ?? 8;
  }

  async lease(authority: string): Promise<AnswersLease> {
    const served = findServed(authority, this.#options.catalogs);
    let opened = this.#opened.get(served.name);
    if (opened?.hash !== served.content.hash) {
      if (opened !== undefined) this.#replace(served.name, opened);
      opened = this.#open(served);
    }
    this.#opened.delete(served.name);
    this.#opened.set(served.name, opened);
    const own = opened;
    own.users++;
    this.#closeUnused();
    const release = (): void => {
      own.users--;
      if (own.isReplaced && own.users === 0) this.#close(own);
      else this.#closeUnused();
    };
    try {
      return { answers: await own.answers, release: once(release) };
    } catch (error) {
      this.#replace(served.name, own);
      release();
      throw error;
    }
  }

  /** Closes what is not in use; the rest when it is released. */
  async close(): Promise<void> {
    for (const [name, opened] of this.#opened) this.#replace(name, opened);
    await Promise.all(this.#closing);
  }

  #open({ name, content }: ServedCatalog): Opened {
    const catalog = new ContentCatalog(name, content);
    const queries = openCatalogAnswers(catalog, this.#options);
    const close = async (): Promise<void> => {
      await (await queries.catch(() => undefined))?.close();
      await catalog.close();
    };
    return { hash: content.hash, answers: queries, close, users: 0, isReplaced: false };
  }

  #replace(name: string, opened: Opened): void {
    if (this.#opened.get(name) === opened) this.#opened.delete(name);
    if (opened.isReplaced) return;
    opened.isReplaced = true;
    if (opened.users === 0) this.#close(opened);
  }

  #closeUnused(): void {
    for (const [name, opened] of this.#opened) {
      if (this.#opened.size <= this.#maxOpen) return;
      if (opened.users === 0) this.#replace(name, opened);
    }
  }

  #close(opened: Opened): void {
    const closing = opened.close().catch(() => undefined);
    this.#closing.add(closing);
    void closing.finally(() => this.#closing.delete(closing));
  }
}

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) work();
    isDone = true;
  };
}

/** Names may have dots: the longest that the host begins with is meant. */
function findServed(authority: string, catalogs: CatalogSet): ServedCatalog {
  const host = authority.replace(/:\d*$/, '').toLowerCase();
  for (let end = host.length; end > 0; end = host.lastIndexOf('.', end - 1)) {
    const name = host.slice(0, end);
    const catalog = catalogs.find(name);
    if (catalog !== undefined) return catalog;
    if (catalogs.isExpected(name)) throw new StatusError('UNAVAILABLE', `catalog ${name} has no content yet`);
  }
  const [only, ...more] = catalogs.list();
  if (only !== undefined && more.length === 0) return only;
  throw new StatusError('NOT_FOUND', `catalog not found for host ${quoteGo(authority.slice(0, 253))}`);
}
