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
import {
  type FetchOptions,
  type OriginManifest,
  createContentFetcher,
  isContentFault,
} from './content-fetch.js';
import { openContent } from './content-store.js';
import { getFirstPollWait, getPollWait, getRetryWait } from './next-look.js';
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

/** One catalog, and the loop that keeps it up to date. */
export type KeptCatalog = ReturnType<typeof keepCatalog>;

/** Starts the loop that keeps a catalog up to date. */
export function keepCatalog(initial: KeptManifest, shared: Shared) {
  const { held, records, contents, now, clock, logger, random, stop } = shared;
  const { name } = initial;
  /** Aborted once the catalog is removed: its record is not written afterwards. */
  const gone = new AbortController();
  const stopOrGone = AbortSignal.any([stop, gone.signal]);
  const fetcher = createContentFetcher(shared, stopOrGone);
  let manifest = initial;
  let record: CatalogRecord = { ...toManifestRecord(initial), conditions: [] };
  /** The last write of the record succeeded. */
  let isWritten = true;
  let content: StoredContent | undefined;
  /** It has been served, or its first look has failed. */
  let isTried = false;
  /** Polls have been moved to the catalog's phase of the interval. */
  let isPhased = false;
  let failures = 0;
  /** Ends the wait for the next look. */
  let wake = new AbortController();

  /** Changes fields of the record, in memory only. */
  function changeRecord(changes: Partial<CatalogRecord>): void {
    record = { ...record, ...changes };
  }

  /** Sets conditions, in memory only. */
  function setConditions(...conditions: UndatedCondition[]): void {
    for (const condition of conditions) {
      changeRecord({ conditions: withCondition(record.conditions, condition, now()) });
    }
  }

  /** Sets conditions and writes the record. Never throws: a full disk does not stop serving. */
  async function write(...conditions: UndatedCondition[]): Promise<void> {
    setConditions(...conditions);
    if (records === undefined || gone.signal.aborted) return;
    try {
      await records.write(record);
      isWritten = true;
    } catch (error) {
      const level = isWritten ? 'warn' : 'debug';
      logger.log(level, `${getMessage(error)}; a restart will read the catalog again`);
      isWritten = false;
    }
  }

  /** Returns the condition of the catalog as it is served now. */
  function getServing(): UndatedCondition {
    return content === undefined ? notServed('no content yet') : served;
  }

  /** Serves content. The previous one is closed after its last reader, which is not awaited. */
  function serve(next: StoredContent, { labels, priority }: KeptManifest): void {
    content = next;
    const { lastUnpacked } = record;
    const changedAt = lastUnpacked === undefined ? undefined : new Date(lastUnpacked);
    held.put({ name, content, labels, priority, changedAt }).catch((error: unknown) => {
      logger.log('debug', `catalog ${name}: ${getMessage(error)}`);
    });
    isTried = true;
    shared.changed();
    setConditions(served);
  }

  /** Serves the content from before the last stop. */
  async function restore(): Promise<void> {
    const before = await records?.read(name);
    if (before === undefined || !manifest.isAvailable) return;
    const { conditions, contentHash, sourceType } = before;
    const stored =
      contentHash === undefined
        ? undefined
        : await shared.restoring(() => {
            throwIfCancelled(stop);
            return openContent(contentHash, { directory: contents, logger });
          });
    if (stored === undefined) {
      changeRecord({ conditions });
      return write(getServing());
    }
    changeRecord({ ...before, ...toManifestRecord(manifest), sourceType });
    serve(stored, manifest);
    await write();
    logger.log('info', `catalog ${name}: serving stored content`, { content: contentHash });
  }

  /** Reports whether the manifest or its fault has changed. */
  function hasChanged({ key, fault }: KeptManifest): boolean {
    return key !== manifest.key || fault?.message !== manifest.fault?.message;
  }

  async function run(restoring: Promise<void>): Promise<void> {
    await restoring;
    while (!stopOrGone.aborted) {
      const current = manifest;
      wake = new AbortController();
      const waitMs = await look(current);
      isTried = true;
      shared.changed();
      if (stopOrGone.aborted) return;
      if (!hasChanged(current)) await clock.wait(waitMs, AbortSignal.any([wake.signal, stop]));
    }
  }

  /** Looks at the origin once. Returns the time until the next look, in milliseconds. */
  async function look(current: KeptManifest): Promise<number> {
    const { origin, fault, pollMs } = current;
    if (origin === undefined) {
      // Keeps serving the content from before the manifest was refused.
      changeRecord({ problems: fault?.problems ?? [] });
      await write(blocked(fault?.message ?? ''), getServing());
      return Infinity;
    }
    if (!current.isAvailable) {
      await withdraw(current);
      return Infinity;
    }
    try {
      await update({ ...current, origin });
    } catch (error) {
      return stopOrGone.aborted ? 0 : noteFailure({ ...current, origin }, error);
    }
    failures = 0;
    fetcher.forgetRejected();
    changeRecord({
      ...toManifestRecord(current),
      lastChecked: formatSeconds(now()),
      problems: fault?.problems,
    });
    const upToDate = progress('Succeeded', 'the catalog is up to date');
    await write(fault === undefined ? upToDate : blocked(fault.message), served);
    if (pollMs === undefined) return Infinity;
    const waitMs = isPhased ? getPollWait(pollMs, random()) : getFirstPollWait(pollMs, name);
    isPhased = true;
    return waitMs;
  }

  async function update(current: OriginManifest): Promise<void> {
    const isKnown = content !== undefined && record.originKey === current.originKey;
    const fetched = await fetcher.fetch(current, isKnown ? record.origin : undefined);
    if (fetched.content !== undefined) return swap(current, fetched.state, fetched.content);
    changeRecord({ origin: fetched.state });
    serve(content as StoredContent, current);
  }

  /** Writes the record before serving the content: until then a restart serves the content before. */
  async function swap(current: KeptManifest, state: PlaceState, next: StoredContent): Promise<void> {
    const { contentHash, lastUnpacked } = record;
    const before = content;
    const isSame = before?.hash === next.hash;
    changeRecord({
      ...toManifestRecord(current),
      originKey: current.originKey,
      origin: state,
      contentHash: next.hash,
      lastUnpacked: isSame ? lastUnpacked : formatSeconds(now()),
    });
    if (isSame) await next.close();
    await write();
    serve(isSame ? before : next, current);
    if (isSame) return;
    if (contentHash !== undefined && contentHash !== next.hash && isWritten) {
      await shared.discard(contentHash);
    }
    logger.log('info', `catalog ${name}: serving ${state.ref}`, {
      content: next.hash,
      packages: next.packages.length,
    });
  }

  /** Stops serving a catalog whose manifest says Unavailable. */
  async function withdraw(current: KeptManifest): Promise<void> {
    content = undefined;
    record = { ...toManifestRecord(current), conditions: record.conditions };
    const message = 'availabilityMode is Unavailable';
    await write(progress('Succeeded', message), notServed(message, 'UserSpecifiedUnavailable'));
    void held.remove(name);
  }

  async function noteFailure(current: OriginManifest, error: unknown): Promise<number> {
    const { message, problems } = joinFaults(current.fault, toCatalogFault(error));
    const isBlocked = isContentFault(error) && isPinned(current.origin);
    const waitMs = isBlocked ? Infinity : getRetryWait(failures++, random());
    const progressing = record.conditions.find(({ type }) => type === 'Progressing');
    const { labels, priority, isAvailable } = current;
    changeRecord({ labels, priority, isAvailable, problems });
    if (content !== undefined) serve(content, current);
    // A repeated failure is logged at debug level.
    const isNew = progressing?.message !== message || !['Retrying', 'Blocked'].includes(progressing.reason);
    const next = isBlocked ? 'not retrying' : `retrying in ${Math.round(waitMs / 1000)} s`;
    const still = content === undefined ? '' : '; still serving the previous content';
    logger.log(
      isNew ? 'warn' : 'debug',
      `catalog ${name}: ${message.replaceAll('\n', '; ')}; ${next}${still}`,
    );
    await write(isBlocked ? blocked(message) : progress('Retrying', message), getServing());
    return waitMs;
  }

  const restoring = restore();
  const loop = run(restoring).catch((error: unknown) => {
    if (!stopOrGone.aborted) logger.log('error', `catalog ${name}: ${getMessage(error)}`);
  });

  return {
    get record() {
      return record;
    },
    get manifest() {
      return manifest;
    },
    get isTried() {
      return isTried;
    },
    /** Resolves once stored content is served or known to be missing. */
    restored: restoring.catch(() => undefined),

    change(next: KeptManifest): void {
      const before = manifest;
      manifest = next;
      if (next.key !== before.key) {
        logger.log('info', `catalog ${name}: manifest changed`);
        failures = 0;
        fetcher.forgetRejected();
      }
      if (hasChanged(before)) wake.abort();
    },

    /** Stops serving the catalog and removes its record. */
    async remove(): Promise<void> {
      gone.abort();
      wake.abort();
      await loop;
      await records?.remove(name).catch(() => undefined);
      // Slow readers are not waited for.
      void held.remove(name);
    },

    /** Ends the loop; served content is closed by the server. */
    async end(): Promise<void> {
      wake.abort();
      await loop;
      if (record.isAvailable) await write(notServed('the server has stopped'));
    },
  };
}
