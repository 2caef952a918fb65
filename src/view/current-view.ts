import { randomBytes } from 'node:crypto';
import type { ViewState } from './responses.js';
import type { CatalogView } from './catalog-view.js';

/** Requests within this time share one check for changes; a page requests an icon per package. */
const restMs = 250;

interface OpenedView {
  view: CatalogView;
  /** Closes the catalog. */
  close?(): Promise<void>;
}

interface CurrentViewOptions {
  /** Opens the catalog; `signal` is aborted when the view is closed. */
  open: (signal: AbortSignal) => Promise<OpenedView>;
  /** Reads a fingerprint of the catalog; without one, the catalog does not change. Throws OpmateError. */
  readState?: (() => Promise<string>) | undefined;
  now: () => Date;
}

type ViewRun = Required<Pick<ViewState, 'run' | 'readAt'>>;

type Work<T> = (view: CatalogView, run: ViewRun) => T | Promise<T>;

/** View with the state of its catalog before reading, and the number of its requests. */
interface SharedView extends ViewRun {
  state: string | undefined;
  /** Cancels opening and checks. */
  stop: AbortController;
  opened: Promise<OpenedView>;
  hasFailed: boolean;
  readers: number;
  isRetired: boolean;
}

/** View of a catalog that is opened again by the first request after its files change. */
export class CurrentView {
  readonly #options: CurrentViewOptions;
  readonly #stop = new AbortController();
  readonly #closing = new Set<Promise<void>>();
  #shared: SharedView | undefined;
  /** Serializes checks for changes. */
  #checking: Promise<unknown> = Promise.resolve();
  #checkedAt = -Infinity;

  constructor(options: CurrentViewOptions) {
    this.#options = options;
  }

  /**
   * Runs `work` with the view, which stays open meanwhile, and its run. `isReload` checks for changes first; otherwise
   * the last check may be up to 250 ms old. Rejects with the error of opening the catalog.
   */
  async use<T>(isReload: boolean, work: Work<T>): Promise<T> {
    const shared = await this.#borrow(isReload);
    try {
      return await work((await shared.opened).view, shared);
    } catch (error) {
      if (shared.hasFailed) throw error;
      // Retry: the files may have changed while they were read.
      const next = await this.#borrow(true);
      try {
        if (next === shared) throw error;
        return await work((await next.opened).view, next);
      } finally {
        this.#release(next);
      }
    } finally {
      this.#release(shared);
    }
  }

  /** Cancels checks and closes the catalog. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#checking;
    if (this.#shared !== undefined) this.#retire(this.#shared);
    await Promise.all(this.#closing);
  }

  #borrow(isReload: boolean): Promise<SharedView> {
    const requestedAt = performance.now();
    const borrowed = this.#checking.then(async () => {
      // A check that started after this request is current.
      const isFresh = isReload ? this.#checkedAt > requestedAt : performance.now() - this.#checkedAt < restMs;
      const shared = isFresh && this.#shared !== undefined ? this.#shared : await this.#refresh();
      shared.readers++;
      return shared;
    });
    this.#checking = borrowed;
    return borrowed;
  }

  #release(shared: SharedView): void {
    shared.readers--;
    this.#closeUnused(shared);
  }

  /** Opens the catalog unless it is open and unchanged. Does not throw: `opened` rejects. */
  async #refresh(): Promise<SharedView> {
    const before = this.#shared;
    if (before !== undefined && this.#stop.signal.aborted) return before;
    this.#checkedAt = performance.now();
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
    const stop = new AbortController();
    opened ??= this.#options.open(AbortSignal.any([stop.signal, this.#stop.signal]));
    const run = randomBytes(6).toString('hex');
    const readAt = this.#options.now().toISOString();
    const shared: SharedView = {
      run,
      readAt,
      state,
      stop,
      opened,
      hasFailed: false,
      readers: 0,
      isRetired: false,
    };
    this.#shared = shared;
    await opened.catch(() => (shared.hasFailed = true));
    return shared;
  }

  #retire(shared: SharedView): void {
    shared.isRetired = true;
    this.#closeUnused(shared);
  }

  #closeUnused(shared: SharedView): void {
    if (!shared.isRetired || shared.readers > 0) return;
    shared.stop.abort();
    const closed = shared.opened
      .then(async ({ view, close }) => {
        await view.endChecks();
        await close?.();
      })
      .catch(() => undefined)
      .finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}
