import { getMessage, throwIfCancelled } from '../../core/errors.js';
import type { Limiter } from '../../core/limiter.js';
import type { Logger } from '../../core/log.js';
import type { PlaceState } from '../../source/drivers/driver.js';
import { type SourceCredentials, isPinned } from '../../source/place.js';
import type { CredentialsKind, SecretName } from '../../source/secrets.js';
import type { SourceSession } from '../../source/session.js';
import type { CatalogRecords } from './catalog-records.js';
import type { HeldCatalogs } from './catalog-set.js';
import {
  type CatalogFault,
  type CatalogRecord,
  describeFault,
  formatSeconds,
  joinFaults,
  toRecord,
} from './catalog-status.js';
import { ContentFetcher, type OriginManifest, isContentFault } from './content-fetch.js';
import { openContent } from './content-store.js';
import type { KeptManifest } from './kept-manifest.js';
import type { StoredContent } from './stored-content.js';
import { KeptRecord, blocked, noContent, progress, served } from './kept-record.js';
import { getFirstPollWait, getPollWait, getRetryWait } from './next-look.js';

/** Clock of the keeper. */
export interface KeeperClock {
  now(): Date;
  /** Resolves after a time, or at once when the signal fires. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

export interface KeeperOptions {
  held: HeldCatalogs;
  /** Directory of contents and records; default memory and nameless files. */
  storage?: string | undefined;
  /** `connect` is called for every look, and its connection closed afterwards: credentials may change. */
  origins: SourceSession;
  /** Reads credentials from a Secret for every look, as they may change; without it, Secrets are refused. */
  credentials?: ((secret: SecretName, kind: CredentialsKind) => Promise<SourceCredentials>) | undefined;
  clock: KeeperClock;
  /** From 0 to 1; spreads the requests of many servers. */
  random: () => number;
  logger?: Logger | undefined;
}

/** State that the catalogs of a keeper share. */
export interface Shared extends KeeperOptions {
  logger: Logger;
  records: CatalogRecords | undefined;
  contents: string | undefined;
  turns: Limiter;
  restoring: Limiter;
  stop: AbortSignal;
  changed(): void;
  /** Removes stored content, unless another catalog has it. */
  discard(hash: string): Promise<void>;
}

/** One catalog, and the loop that keeps it up to date. */
export class KeptCatalog {
  readonly #record: KeptRecord;
  /** It has been served, or its first look has failed. */
  isTried = false;
  /** Resolves once stored content is served or known to be missing. */
  restored: Promise<void> = Promise.resolve();
  /** Polls have been moved to the catalog's phase of the interval. */
  #isPhased = false;
  #manifest: KeptManifest;
  readonly #shared: Shared;
  readonly #gone = new AbortController();
  /** Ends the wait for the next look. */
  #wake = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #content: StoredContent | undefined;
  #failures = 0;
  readonly #fetcher: ContentFetcher;

  constructor(manifest: KeptManifest, shared: Shared) {
    this.#manifest = manifest;
    this.#shared = shared;
    const { clock, stop } = shared;
    const now = () => clock.now();
    const signal = this.#gone.signal;
    this.#record = new KeptRecord(
      { ...toRecord(manifest), conditions: [] },
      { records: shared.records, now, logger: shared.logger, gone: signal },
    );
    this.#fetcher = new ContentFetcher({ ...shared, now, signal: AbortSignal.any([stop, signal]) });
  }

  get record(): CatalogRecord {
    return this.#record.value;
  }

  get manifest(): KeptManifest {
    return this.#manifest;
  }

  start(): void {
    const restoring = this.#restore();
    this.restored = restoring.catch(() => undefined);
    this.#loop = this.#run(restoring).catch((error: unknown) => {
      if (this.#isStopped()) return;
      this.#shared.logger.log('error', `catalog ${this.record.name}: ${getMessage(error)}`);
    });
  }

  change(manifest: KeptManifest): void {
    const before = this.#manifest;
    this.#manifest = manifest;
    if (manifest.key !== before.key) {
      this.#shared.logger.log('info', `catalog ${manifest.name}: manifest changed`);
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
    const { held, records } = this.#shared;
    await records?.remove(this.record.name).catch(() => undefined);
    // Slow readers are not waited for.
    void held.remove(this.record.name);
    this.#content = undefined;
  }

  /** Ends the loop; served content is closed by the server. */
  async end(): Promise<void> {
    this.#wake.abort();
    await this.#loop;
    if (this.record.isAvailable) {
      await this.#record.note({
        type: 'Serving',
        status: 'False',
        reason: 'Unavailable',
        message: 'the server has stopped',
      });
    }
  }

  /** Reports whether the manifest or its fault has changed. */
  #hasChanged({ key, fault }: KeptManifest): boolean {
    return key !== this.#manifest.key || fault?.message !== this.#manifest.fault?.message;
  }

  #isStopped(): boolean {
    return this.#shared.stop.aborted || this.#gone.signal.aborted;
  }

  async #run(restoring: Promise<void>): Promise<void> {
    await restoring;
    while (!this.#isStopped()) {
      const manifest = this.#manifest;
      this.#wake = new AbortController();
      const waitMs = await this.#look(manifest);
      this.isTried = true;
      this.#shared.changed();
      if (this.#isStopped()) return;
      if (this.#hasChanged(manifest)) continue;
      const signal = AbortSignal.any([this.#wake.signal, this.#shared.stop]);
      await this.#shared.clock.wait(waitMs, signal);
    }
  }

  /** Serves the content from before the last stop. */
  async #restore(): Promise<void> {
    const { records, contents, logger, restoring, stop } = this.#shared;
    const before = await records?.read(this.record.name);
    if (before === undefined || !this.#manifest.isAvailable) return;
    const { conditions, contentHash } = before;
    const content =
      contentHash === undefined
        ? undefined
        : await restoring(() => {
            throwIfCancelled(stop);
            return openContent(contentHash, { directory: contents, logger });
          });
    if (content === undefined) {
      this.#record.change({ conditions });
      return this.#record.note(noContent);
    }
    const { sourceType } = before;
    this.#record.replace({ ...before, ...toRecord(this.#manifest), sourceType });
    this.#content = content;
    this.#serve(content);
    await this.#record.write();
    logger.log('info', `catalog ${before.name}: serving stored content`, { content: contentHash });
  }

  /** Looks at the origin once. Returns the time until the next look, in milliseconds. */
  async #look(manifest: KeptManifest): Promise<number> {
    const { clock, random } = this.#shared;
    const { origin } = manifest;
    if (origin === undefined) return this.#noteBlocked(manifest.fault ?? { message: '', problems: [] });
    if (!manifest.isAvailable) return this.#withdraw(manifest);
    try {
      await this.#update({ ...manifest, origin });
    } catch (error) {
      if (this.#isStopped()) return 0;
      return this.#noteFailure({ ...manifest, origin }, error);
    }
    this.#failures = 0;
    this.#fetcher.forgetRejected();
    this.#record.change({
      ...toRecord(manifest),
      lastChecked: formatSeconds(clock.now()),
      problems: manifest.fault?.problems,
    });
    await this.#record.note(
      manifest.fault === undefined
        ? progress('Succeeded', 'the catalog is up to date')
        : blocked(manifest.fault),
      served,
    );
    if (manifest.pollMs === undefined) return Infinity;
    const isPhased = this.#isPhased;
    this.#isPhased = true;
    return isPhased
      ? getPollWait(manifest.pollMs, random())
      : getFirstPollWait(manifest.pollMs, manifest.name);
  }

  async #update(manifest: OriginManifest): Promise<void> {
    const served = this.#content;
    const known = this.record.originKey === manifest.originKey ? this.record.origin : undefined;
    const { state, content } = await this.#fetcher.fetch(manifest, served === undefined ? undefined : known);
    if (content !== undefined) return this.#swap(manifest, state, content);
    this.#record.change({ origin: state });
    this.#serve(served as StoredContent, manifest);
  }

  /** Writes the record before serving the content: until then a restart serves the content before. */
  async #swap(manifest: KeptManifest, state: PlaceState, content: StoredContent): Promise<void> {
    const { clock, logger } = this.#shared;
    const before = this.record;
    const isSame = this.#content?.hash === content.hash;
    this.#record.change({
      ...toRecord(manifest),
      originKey: manifest.originKey,
      origin: state,
      contentHash: content.hash,
      lastUnpacked: isSame ? before.lastUnpacked : formatSeconds(clock.now()),
    });
    if (isSame) {
      await content.close();
      await this.#record.write();
      this.#serve(this.#content as StoredContent, manifest);
      return;
    }
    await this.#record.write();
    this.#content = content;
    this.#serve(content, manifest);
    const { contentHash } = before;
    if (contentHash !== undefined && contentHash !== content.hash && this.#record.isWritten) {
      await this.#shared.discard(contentHash);
    }
    logger.log('info', `catalog ${manifest.name}: serving ${state.ref}`, {
      content: content.hash,
      packages: content.packages.length,
    });
  }

  /** Serves content. The previous one is closed after its last reader, which is not awaited. */
  #serve(content: StoredContent, manifest = this.#manifest): void {
    const { held, logger } = this.#shared;
    const { name, labels, priority } = manifest;
    const { lastUnpacked } = this.record;
    const changedAt = lastUnpacked === undefined ? undefined : new Date(lastUnpacked);
    held.put({ name, content, labels, priority, changedAt }).catch((error: unknown) => {
      logger.log('debug', `catalog ${name}: ${getMessage(error)}`);
    });
    this.isTried = true;
    this.#shared.changed();
    this.#record.setCondition(served);
  }

  /** Stops serving a catalog whose manifest says Unavailable. */
  async #withdraw(manifest: KeptManifest): Promise<number> {
    this.#content = undefined;
    this.#record.replace({ ...toRecord(manifest), conditions: this.record.conditions });
    const message = 'availabilityMode is Unavailable';
    await this.#record.note(progress('Succeeded', message), {
      type: 'Serving',
      status: 'False',
      reason: 'UserSpecifiedUnavailable',
      message,
    });
    void this.#shared.held.remove(manifest.name);
    return Infinity;
  }

  /** Keeps serving the content from before a refused manifest. */
  async #noteBlocked({ message, problems }: CatalogFault): Promise<number> {
    this.#record.change({ problems });
    await this.#record.note(blocked({ message }), this.#content === undefined ? noContent : served);
    return Infinity;
  }

  async #noteFailure(manifest: OriginManifest, error: unknown): Promise<number> {
    const { logger, random } = this.#shared;
    const { message, problems } = joinFaults(manifest.fault, describeFault(error));
    const isBlocked = isContentFault(error) && isPinned(manifest.origin);
    const waitMs = isBlocked ? Infinity : getRetryWait(this.#failures++, random());
    const progressing = this.record.conditions.find(({ type }) => type === 'Progressing');
    const { name, labels, priority, isAvailable } = toRecord(manifest);
    this.#record.change({ name, labels, priority, isAvailable, problems });
    if (this.#content !== undefined) this.#serve(this.#content, manifest);
    // A repeated failure is logged at debug level.
    const isNew = progressing?.message !== message || !['Retrying', 'Blocked'].includes(progressing.reason);
    const next = isBlocked ? 'not retrying' : `retrying in ${Math.round(waitMs / 1000)} s`;
    const still = this.#content === undefined ? '' : '; still serving the previous content';
    logger.log(
      isNew ? 'warn' : 'debug',
      `catalog ${name}: ${message.replaceAll('\n', '; ')}; ${next}${still}`,
    );
    await this.#record.note(
      isBlocked ? blocked({ message }) : progress('Retrying', message),
      this.#content === undefined ? noContent : served,
    );
    return waitMs;
  }
}
