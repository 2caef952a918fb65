import { computeDigest, parseDigest } from '../../core/digest.js';
import { getMessage, throwIfCancelled } from '../../core/errors.js';
import type { Limiter } from '../../core/limiter.js';
import type { Logger } from '../../core/log.js';
import type { PlaceState } from '../../source/drivers/driver.js';
import { isPinned } from '../../source/place.js';
import type { CatalogRecords } from './catalog-records.js';
import type { CatalogSet } from './catalog-set.js';
import {
  type CatalogRecord,
  type KeptManifest,
  type UndatedCondition,
  blocked,
  toCatalogFault,
  formatSeconds,
  joinFaults,
  notServed,
  progress,
  served,
  toManifestRecord,
  withCondition,
} from './catalog-status.js';
import { type FetchOptions, type OriginManifest, ContentFetcher, isContentFault } from './content-fetch.js';
import { openContent } from './content-store.js';
import type { StoredContent } from './stored-content.js';

/** Clock of the keeper. */
export interface KeeperClock {
  now(): Date;
  /** Resolves after a time, or at once when the signal fires. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

export interface KeeperOptions extends Pick<FetchOptions, 'origins' | 'credentials'> {
  held: CatalogSet;
  /** Directory of contents and records; default memory and nameless files. */
  storage?: string | undefined;
  clock: KeeperClock;
  /** From 0 to 1; spreads the requests of many servers. */
  random: () => number;
  logger?: Logger | undefined;
}

/** State that the catalogs of a keeper share. */
export interface Shared extends KeeperOptions, FetchOptions {
  logger: Logger;
  records: CatalogRecords | undefined;
  restoring: Limiter;
  stop: AbortSignal;
  changed(): void;
}

/** First and maximum wait after a failure. */
const firstRetryMs = 5_000;
const maxRetryMs = 10 * 60_000;
/** Maximum delay of a poll, as part of its interval. (Source: catalogd.) */
const pollJitter = 0.01;

/** One catalog, and the loop that keeps it up to date, which starts with it. */
export class KeptCatalog {
  readonly #shared: Shared;
  readonly #logger: Logger;
  readonly #name: string;
  /** Aborted once the catalog is removed: its record is not written afterwards. */
  readonly #gone = new AbortController();
  readonly #stopOrGone: AbortSignal;
  readonly #fetcher: ContentFetcher;
  #manifest: KeptManifest;
  #record: CatalogRecord;
  /** The last write of the record succeeded. */
  #isWritten = true;
  #content: StoredContent | undefined;
  /** It has been served, or its first look has failed. */
  #isTried = false;
  /** Polls have been moved to the catalog's phase of the interval. */
  #isPhased = false;
  #failures = 0;
  /** Ends the wait for the next look. */
  #wake = new AbortController();
  readonly #loop: Promise<void>;
  /** Resolves once stored content is served or known to be missing. */
  readonly restored: Promise<void>;

  constructor(initial: KeptManifest, shared: Shared) {
    this.#shared = shared;
    this.#logger = shared.logger;
    this.#name = initial.name;
    this.#stopOrGone = AbortSignal.any([shared.stop, this.#gone.signal]);
    this.#fetcher = new ContentFetcher(shared, this.#stopOrGone);
    this.#manifest = initial;
    this.#record = { ...toManifestRecord(initial), conditions: [] };
    const restoring = this.#restore();
    this.#loop = this.#run(restoring).catch((error: unknown) => {
      if (!this.#stopOrGone.aborted) this.#logger.log('error', `catalog ${this.#name}: ${getMessage(error)}`);
    });
    this.restored = restoring.catch(() => undefined);
  }

  /** Changes fields of the record, in memory only. */
  #changeRecord(changes: Partial<CatalogRecord>): void {
    this.#record = { ...this.#record, ...changes };
  }

  /** Sets conditions, in memory only. */
  #setConditions(...conditions: UndatedCondition[]): void {
    for (const condition of conditions) {
      this.#changeRecord({
        conditions: withCondition(this.#record.conditions, condition, this.#shared.now()),
      });
    }
  }

  /** Sets conditions and writes the record. Never throws: a full disk does not stop serving. */
  async #write(...conditions: UndatedCondition[]): Promise<void> {
    this.#setConditions(...conditions);
    if (this.#shared.records === undefined || this.#gone.signal.aborted) return;
    try {
      await this.#shared.records.write(this.#record);
      this.#isWritten = true;
    } catch (error) {
      const level = this.#isWritten ? 'warn' : 'debug';
      this.#logger.log(level, `${getMessage(error)}; a restart will read the catalog again`);
      this.#isWritten = false;
    }
  }

  /** Returns the condition of the catalog as it is served now. */
  #getServing(): UndatedCondition {
    return this.#content === undefined ? notServed('no content yet') : served;
  }

  /** Serves content. The previous one is closed after its last reader, which is not awaited. */
  #serve(next: StoredContent, { labels, priority }: KeptManifest): void {
    this.#content = next;
    const { lastUnpacked } = this.#record;
    const changedAt = lastUnpacked === undefined ? undefined : new Date(lastUnpacked);
    this.#shared.held
      .put({ name: this.#name, content: this.#content, labels, priority, changedAt })
      .catch((error: unknown) => {
        this.#logger.log('debug', `catalog ${this.#name}: ${getMessage(error)}`);
      });
    this.#isTried = true;
    this.#shared.changed();
    this.#setConditions(served);
  }

  /** Serves the content from before the last stop. */
  async #restore(): Promise<void> {
    const before = await this.#shared.records?.read(this.#name);
    if (before === undefined || !this.#manifest.isAvailable) return;
    const { conditions, contentHash, sourceType } = before;
    const stored =
      contentHash === undefined
        ? undefined
        : await this.#shared.restoring(() => {
            throwIfCancelled(this.#shared.stop);
            return openContent(contentHash, { directory: this.#shared.contents, logger: this.#logger });
          });
    if (stored === undefined) {
      this.#changeRecord({ conditions });
      return this.#write(this.#getServing());
    }
    this.#changeRecord({ ...before, ...toManifestRecord(this.#manifest), sourceType });
    this.#serve(stored, this.#manifest);
    await this.#write();
    this.#logger.log('info', `catalog ${this.#name}: serving stored content`, { content: contentHash });
  }

  /** Reports whether the manifest or its fault has changed. */
  #hasChanged({ key, fault }: KeptManifest): boolean {
    return key !== this.#manifest.key || fault?.message !== this.#manifest.fault?.message;
  }

  async #run(restoring: Promise<void>): Promise<void> {
    await restoring;
    while (!this.#stopOrGone.aborted) {
      const current = this.#manifest;
      this.#wake = new AbortController();
      const waitMs = await this.#look(current);
      this.#isTried = true;
      this.#shared.changed();
      if (this.#stopOrGone.aborted) return;
      if (!this.#hasChanged(current))
        await this.#shared.clock.wait(waitMs, AbortSignal.any([this.#wake.signal, this.#shared.stop]));
    }
  }

  /** Looks at the origin once. Returns the time until the next look, in milliseconds. */
  async #look(current: KeptManifest): Promise<number> {
    const { origin, fault, pollMs } = current;
    if (origin === undefined) {
      // Keeps serving the content from before the manifest was refused.
      this.#changeRecord({ problems: fault?.problems ?? [] });
      await this.#write(blocked(fault?.message ?? ''), this.#getServing());
      return Infinity;
    }
    if (!current.isAvailable) {
      await this.#withdraw(current);
      return Infinity;
    }
    try {
      await this.#update({ ...current, origin });
    } catch (error) {
      return this.#stopOrGone.aborted ? 0 : this.#noteFailure({ ...current, origin }, error);
    }
    this.#failures = 0;
    this.#fetcher.forgetRejected();
    this.#changeRecord({
      ...toManifestRecord(current),
      lastChecked: formatSeconds(this.#shared.now()),
      problems: fault?.problems,
    });
    const upToDate = progress('Succeeded', 'the catalog is up to date');
    await this.#write(fault === undefined ? upToDate : blocked(fault.message), served);
    if (pollMs === undefined) return Infinity;
    const waitMs = this.#isPhased
      ? getPollWait(pollMs, this.#shared.random())
      : getFirstPollWait(pollMs, this.#name);
    this.#isPhased = true;
    return waitMs;
  }

  async #update(current: OriginManifest): Promise<void> {
    const isKnown = this.#content !== undefined && this.#record.originKey === current.originKey;
    const fetched = await this.#fetcher.fetch(current, isKnown ? this.#record.origin : undefined);
    if (fetched.content !== undefined) return this.#swap(current, fetched.state, fetched.content);
    this.#changeRecord({ origin: fetched.state });
    this.#serve(this.#content as StoredContent, current);
  }

  /** Writes the record before serving the content: until then a restart serves the content before. */
  async #swap(current: KeptManifest, state: PlaceState, next: StoredContent): Promise<void> {
    const { contentHash, lastUnpacked } = this.#record;
    const before = this.#content;
    const isSame = before?.hash === next.hash;
    this.#changeRecord({
      ...toManifestRecord(current),
      originKey: current.originKey,
      origin: state,
      contentHash: next.hash,
      lastUnpacked: isSame ? lastUnpacked : formatSeconds(this.#shared.now()),
    });
    if (isSame) await next.close();
    await this.#write();
    this.#serve(isSame ? before : next, current);
    if (isSame) return;
    if (contentHash !== undefined && contentHash !== next.hash && this.#isWritten) {
      await this.#shared.discard(contentHash);
    }
    this.#logger.log('info', `catalog ${this.#name}: serving ${state.ref}`, {
      content: next.hash,
      packages: next.packages.length,
    });
  }

  /** Stops serving a catalog whose manifest says Unavailable. */
  async #withdraw(current: KeptManifest): Promise<void> {
    this.#content = undefined;
    this.#record = { ...toManifestRecord(current), conditions: this.#record.conditions };
    const message = 'availabilityMode is Unavailable';
    await this.#write(progress('Succeeded', message), notServed(message, 'UserSpecifiedUnavailable'));
    void this.#shared.held.remove(this.#name);
  }

  async #noteFailure(current: OriginManifest, error: unknown): Promise<number> {
    const { message, problems } = joinFaults(current.fault, toCatalogFault(error));
    const isBlocked = isContentFault(error) && isPinned(current.origin);
    const waitMs = isBlocked ? Infinity : getRetryWait(this.#failures++, this.#shared.random());
    const progressing = this.#record.conditions.find(({ type }) => type === 'Progressing');
    const { labels, priority, isAvailable } = current;
    this.#changeRecord({ labels, priority, isAvailable, problems });
    if (this.#content !== undefined) this.#serve(this.#content, current);
    // A repeated failure is logged at debug level.
    const isNew = progressing?.message !== message || !['Retrying', 'Blocked'].includes(progressing.reason);
    const next = isBlocked ? 'not retrying' : `retrying in ${Math.round(waitMs / 1000)} s`;
    const still = this.#content === undefined ? '' : '; still serving the previous content';
    this.#logger.log(
      isNew ? 'warn' : 'debug',
      `catalog ${this.#name}: ${message.replaceAll('\n', '; ')}; ${next}${still}`,
    );
    await this.#write(isBlocked ? blocked(message) : progress('Retrying', message), this.#getServing());
    return waitMs;
  }

  get record() {
    return this.#record;
  }

  get manifest() {
    return this.#manifest;
  }

  get isTried() {
    return this.#isTried;
  }

  change(next: KeptManifest): void {
    const before = this.#manifest;
    this.#manifest = next;
    if (next.key !== before.key) {
      this.#logger.log('info', `catalog ${this.#name}: manifest changed`);
      this.#failures = 0;
      this.#fetcher.forgetRejected();
    }
    if (this.#hasChanged(before)) this.#wake.abort();
  }

  /** Stops serving the catalog and removes its record. */
  async remove(): Promise<void> {
    this.#gone.abort();
    this.#wake.abort();
    await this.#loop;
    await this.#shared.records?.remove(this.#name).catch(() => undefined);
    // Slow readers are not waited for.
    void this.#shared.held.remove(this.#name);
  }

  /** Ends the loop; served content is closed by the server. */
  async end(): Promise<void> {
    this.#wake.abort();
    await this.#loop;
    if (this.#record.isAvailable) await this.#write(notServed('the server has stopped'));
  }
}

/** Returns the wait after a number of failures, in milliseconds; `random` is from 0 to 1. */
function getRetryWait(failures: number, random: number): number {
  return Math.min(maxRetryMs, firstRetryMs * 2 ** Math.min(failures, 20)) * (0.75 + random / 2);
}

/** Returns the wait for the next poll, in milliseconds; `random` is from 0 to 1. */
function getPollWait(pollMs: number, random: number): number {
  return pollMs * (1 + random * pollJitter);
}

/**
 * Returns the wait for the second look, in milliseconds. All catalogs start together; afterwards each has its phase of the
 * interval, equal on every server.
 */
function getFirstPollWait(pollMs: number, name: string): number {
  const { hex } = parseDigest(computeDigest(name));
  return (pollMs * (Number.parseInt(hex.slice(0, 8), 16) + 1)) / 2 ** 32;
}
