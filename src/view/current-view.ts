import { randomBytes } from 'node:crypto';
import type { ViewState } from './answers.js';
import type { CatalogView } from './catalog-view.js';

/** Requests within this time share one look at the files; a page has an icon for each package. */
const restMs = 250;

/** A view that is open; `close` ends its checks and closes what it reads. */
export interface OpenedView {
  view: CatalogView;
  close(): Promise<void>;
}

interface CurrentViewOptions {
  /** Opens the catalog; `signal` fires when the view is closed. */
  open: (signal: AbortSignal) => Promise<OpenedView>;
  /** Reads a text that differs once the catalog does; a catalog without one does not change. Throws OpmateError. */
  readState?: (() => Promise<string>) | undefined;
  now: () => Date;
}

/** Names a view in URLs and answers (what browsers keep belongs to it), and says when its catalog was read. */
type ViewRun = Pick<ViewState, 'run' | 'readAt'>;

type Work<T> = (view: CatalogView, run: ViewRun) => T | Promise<T>;

/** A view, the state that its catalog was in before it was read, and how many requests read it. */
interface Shown extends ViewRun {
  state: string | undefined;
  opened: Promise<OpenedView>;
  hasFailed: boolean;
  readers: number;
  isRetired: boolean;
}

/** The view of a catalog as it is now: once its files change, the next request has the catalog read again. */
export class CurrentView {
  readonly #options: CurrentViewOptions;
  readonly #stop = new AbortController();
  readonly #closing = new Set<Promise<void>>();
  #shown: Shown | undefined;
  /** Looks at the files, one after the other. */
  #looking: Promise<unknown> = Promise.resolve();
  #lookedAt = -Infinity;

  constructor(options: CurrentViewOptions) {
    this.#options = options;
  }

  /**
   * Runs `work` with the view, which stays open meanwhile, and its id. `isReload` looks for changes now;
   * otherwise those of the last moment may be missing. Throws what opening the catalog throws.
   */
  async use<T>(isReload: boolean, work: Work<T>): Promise<T> {
    const shown = await this.#borrow(isReload);
    try {
      return await work((await shown.opened).view, shown);
    } catch (error) {
      if (shown.hasFailed) throw error;
      // Its files may have changed while they were read.
      const next = await this.#borrow(true);
      try {
        if (next === shown) throw error;
        return await work((await next.opened).view, next);
      } finally {
        this.#giveBack(next);
      }
    } finally {
      this.#giveBack(shown);
    }
  }

  /** Ends what reads the catalog, and closes it. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#looking;
    if (this.#shown !== undefined) this.#retire(this.#shown);
    await Promise.all(this.#closing);
  }

  #borrow(isReload: boolean): Promise<Shown> {
    const askedAt = performance.now();
    const borrowed = this.#looking.then(async () => {
      // A look that began after this request is as good as another one.
      const isFresh = isReload ? this.#lookedAt > askedAt : performance.now() - this.#lookedAt < restMs;
      const shown = isFresh && this.#shown !== undefined ? this.#shown : await this.#look();
      shown.readers++;
      return shown;
    });
    this.#looking = borrowed;
    return borrowed;
  }

  #giveBack(shown: Shown): void {
    shown.readers--;
    this.#closeUnused(shown);
  }

  /** Opens the catalog unless it is open in its present state. Does not throw: what is shown has the failure. */
  async #look(): Promise<Shown> {
    const before = this.#shown;
    if (before !== undefined && this.#stop.signal.aborted) return before;
    this.#lookedAt = performance.now();
    let state: string | undefined;
    let opened: Promise<OpenedView> | undefined;
    try {
      state = await this.#options.readState?.();
    } catch (error) {
      opened = Promise.reject(error as Error);
    }
    const isSame = opened === undefined && state === before?.state;
    if (before !== undefined && isSame && !before.hasFailed) return before;
    if (before !== undefined) this.#retire(before);
    opened ??= this.#options.open(this.#stop.signal);
    const run = randomBytes(6).toString('hex');
    const readAt = this.#options.now().toISOString();
    const shown: Shown = { run, readAt, state, opened, hasFailed: false, readers: 0, isRetired: false };
    this.#shown = shown;
    await opened.catch(() => (shown.hasFailed = true));
    return shown;
  }

  #retire(shown: Shown): void {
    shown.isRetired = true;
    this.#closeUnused(shown);
  }

  #closeUnused(shown: Shown): void {
    if (!shown.isRetired || shown.readers > 0) return;
    const closed = shown.opened
      .then((opened) => opened.close())
      .catch(() => undefined)
      .finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}
