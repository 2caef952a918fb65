import type { Catalog } from '../../catalog/catalog.js';
import { CancelledError, OpmateError, getMessage, throwIfCancelled } from '../../core/errors.js';
import type { Limiter } from '../../core/limiter.js';
import type { Logger } from '../../core/log.js';
import { quoteGo } from '../../document/go-json.js';
import type { Connection } from '../../oci/registry/connection.js';
import type { PlaceState, ResolvedPlace } from '../../source/drivers/driver.js';
import { type CatalogPlace, type SourceCredentials, isPinned } from '../../source/place.js';
import { openResolved, resolvePlace } from '../../source/resolve-place.js';
import type { CredentialsKind, SecretName } from '../../source/secrets.js';
import { type SourceSession, withChanges } from '../../source/session.js';
import type { CatalogSource } from '../../source/source-types.js';
import type { CatalogRecords } from './catalog-records.js';
import type { HeldCatalogs } from './catalog-set.js';
import {
  type CatalogFault,
  type CatalogRecord,
  describeFault,
  getSeconds,
  joinFaults,
  recordOfManifest,
} from './catalog-status.js';
import { openContent, storeContent } from './content-store.js';
import type { KeptManifest } from './kept-manifest.js';
import type { StoredContent } from './stored-content.js';
import { KeptRecord, noContent, served } from './kept-record.js';
import { getFirstPollWait, getPollWait, getRetryWait } from './next-look.js';

/** Time as the keeper sees it. */
export interface KeeperClock {
  now(): Date;
  /** Resolves after a time, or at once when the signal fires. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

/** What a keeper of catalogs works with. */
export interface KeeperOptions {
  /** What is served. */
  held: HeldCatalogs;
  /** Where contents and records are kept; in memory or nameless files where it is left out. */
  storage?: string | undefined;
  /** `connect` is called for every look, and its connection closed afterwards: credentials may change. */
  origins: SourceSession;
  /** Finds the credentials in a Secret, for every look: they may change. Secrets are refused where it is left out. */
  credentials?: ((secret: SecretName, kind: CredentialsKind) => Promise<SourceCredentials>) | undefined;
  clock: KeeperClock;
  /** From 0 to 1, so that many servers do not ask at the same moment. */
  random: () => number;
  logger?: Logger | undefined;
}

/** What the catalogs of a keeper share. */
export interface Shared extends KeeperOptions {
  logger: Logger;
  records: CatalogRecords | undefined;
  contents: string | undefined;
  turns: Limiter;
  restoring: Limiter;
  stop: AbortSignal;
  changed(): void;
  /** Removes content that a catalog had, unless another has it. */
  discard(hash: string): Promise<void>;
}

/** One catalog, and the loop that looks after it. */
export class KeptCatalog {
  readonly #record: KeptRecord;
  /** Whether it has been served, or could not be, at least once. */
  isTried = false;
  /** Resolves once what was stored is served, or is known not to be there. */
  restored: Promise<void> = Promise.resolve();
  /** Whether its polls have been moved to its own moment. */
  #isPhased = false;
  #manifest: KeptManifest;
  readonly #shared: Shared;
  readonly #gone = new AbortController();
  /** Ends the wait for the next look. */
  #wake = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #content: StoredContent | undefined;
  #failures = 0;
  /** A state of which is known that it cannot be served; it is not fetched again for that. */
  #refused: { state: PlaceState; error: unknown } | undefined;

  constructor(manifest: KeptManifest, shared: Shared) {
    this.#manifest = manifest;
    this.#shared = shared;
    const { records, clock, logger } = shared;
    this.#record = new KeptRecord(
      { ...recordOfManifest(manifest), conditions: [] },
      { records, now: () => clock.now(), logger, gone: this.#gone.signal },
    );
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
      this.#shared.logger.log('info', `catalog ${manifest.name}: the manifest has changed`);
      this.#failures = 0;
      this.#refused = undefined;
    }
    if (this.#hasChanged(before)) this.#wake.abort();
  }

  /** Serves it no longer, and forgets it. */
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

  /** Ends the loop; what is served is closed by whoever serves it. */
  async end(): Promise<void> {
    this.#wake.abort();
    await this.#loop;
    if (this.record.isAvailable) {
      await this.#record.note({
        type: 'Serving',
        status: 'False',
        reason: 'Unavailable',
        message: 'the server has ended',
      });
    }
  }

  /** Whether another manifest has come, or the same with another fault. */
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

  /** Serves what was served before the last stop. */
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
    this.#record.replace({ ...before, ...recordOfManifest(this.#manifest), sourceType });
    this.#content = content;
    this.#serve(content);
    await this.#record.write();
    logger.log('info', `catalog ${before.name}: served as before`, { content: contentHash });
  }

  /** Looks at the origin once; says how long to wait for the next time. */
  async #look(manifest: KeptManifest): Promise<number> {
    const { clock, random } = this.#shared;
    const { origin } = manifest;
    if (origin === undefined) return this.#noteRefused(manifest.fault ?? { message: '', problems: [] });
    if (!manifest.isAvailable) return this.#withdraw(manifest);
    try {
      await this.#update({ ...manifest, origin });
    } catch (error) {
      if (this.#isStopped()) return 0;
      return this.#noteFailure({ ...manifest, origin }, error);
    }
    this.#failures = 0;
    this.#refused = undefined;
    this.#record.change({
      ...recordOfManifest(manifest),
      lastChecked: getSeconds(clock.now()),
      problems: manifest.fault?.problems,
    });
    await this.#record.note(
      manifest.fault === undefined
        ? {
            type: 'Progressing',
            status: 'True',
            reason: 'Succeeded',
            message: 'the catalog is in its latest state',
          }
        : { type: 'Progressing', status: 'False', reason: 'Blocked', message: manifest.fault.message },
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
    const { origins } = this.#shared;
    const signal = AbortSignal.any([this.#shared.stop, this.#gone.signal]);
    let connection: Promise<Connection> | undefined;
    const connect = (): Promise<Connection> => (connection ??= Promise.resolve(origins.connect()));
    const session = withChanges(origins, { signal, connect });
    try {
      await this.#lookAndTake(manifest, session);
    } finally {
      (await connection?.catch(() => undefined))?.close();
    }
  }

  async #lookAndTake(manifest: OriginManifest, session: SourceSession): Promise<void> {
    const known = this.record.originKey === manifest.originKey ? this.record.origin : undefined;
    // What was refused is still there, most likely, and need not be sent again either.
    const place = await resolvePlace(await this.#withCredentials(manifest), session, {
      known: this.#refused?.state ?? known,
    });
    try {
      if (this.#content !== undefined && place.state.id === known?.id) {
        this.#record.change({ origin: place.state });
        this.#serve(this.#content, manifest);
        return;
      }
      if (this.#refused?.state.id === place.state.id) throw this.#refused.error;
      await this.#shared.turns(() => {
        throwIfCancelled(session.signal);
        return this.#takeOver(manifest, place, session);
      });
    } finally {
      await place.close();
    }
  }

  /** Faults of a Secret are tried again, as those of the way to the content: another Secret may come. */
  async #withCredentials({ origin, secret }: OriginManifest): Promise<CatalogPlace> {
    const { credentials } = this.#shared;
    if (secret === undefined || (origin.kind !== 'git' && origin.kind !== 'http')) return origin;
    try {
      if (credentials === undefined) {
        throw new OpmateError('AUTH', `Secret ${quoteGo(secret.name)}: no directory of Secrets`, {
          hint: 'specify its directory with --secrets',
        });
      }
      return { ...origin, credentials: await credentials(secret, origin.kind) };
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      const { message, hint } = error;
      throw new OpmateError('AUTH', message, { hint, cause: error });
    }
  }

  /** Stores a state, and then serves it: until that is written down, a restart serves the one before. */
  async #takeOver(manifest: OriginManifest, place: ResolvedPlace, session: SourceSession): Promise<void> {
    const { clock, contents, logger } = this.#shared;
    const { state, isImmutable } = place;
    const catalog = openLazily(() => openResolved(place));
    let content: StoredContent;
    try {
      content = await storeContent(catalog, {
        directory: contents,
        temporaryDirectory: session.temporaryDirectory,
        now: () => clock.now(),
        key: isImmutable ? state.id : undefined,
        signal: session.signal,
        logger,
      });
    } catch (error) {
      if (isAboutContent(error) && isImmutable) this.#refused = { state, error };
      throw error;
    } finally {
      await catalog.close();
    }
    try {
      if ((await place.confirm?.()) === false) {
        throw new OpmateError('IO', `${state.ref}: has changed by another process while reading`);
      }
      if (this.#isStopped()) throw new CancelledError();
    } catch (error) {
      await content.close();
      // Nothing has it; the sweep would leave it for an hour.
      await this.#shared.discard(content.hash);
      throw error;
    }
    await this.#swap(manifest, state, content);
  }

  async #swap(manifest: KeptManifest, state: PlaceState, content: StoredContent): Promise<void> {
    const { clock, logger } = this.#shared;
    const before = this.record;
    const isSame = this.#content?.hash === content.hash;
    this.#record.change({
      ...recordOfManifest(manifest),
      originKey: manifest.originKey,
      origin: state,
      contentHash: content.hash,
      lastUnpacked: isSame ? before.lastUnpacked : getSeconds(clock.now()),
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
    logger.log('info', `catalog ${manifest.name}: serves ${state.ref}`, {
      content: content.hash,
      packages: content.packages.length,
    });
  }

  /** Puts the content among what is served. The one before is closed when its last reader is done: not waited for. */
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

  /** A catalog that the user has switched off: its content goes. */
  async #withdraw(manifest: KeptManifest): Promise<number> {
    this.#content = undefined;
    this.#record.replace({ ...recordOfManifest(manifest), conditions: this.record.conditions });
    await this.#record.note(
      { type: 'Progressing', status: 'True', reason: 'Succeeded', message: 'the catalog is not wanted' },
      {
        type: 'Serving',
        status: 'False',
        reason: 'UserSpecifiedUnavailable',
        message: 'the manifest says Unavailable',
      },
    );
    void this.#shared.held.remove(manifest.name);
    return Infinity;
  }

  /** A manifest that is refused, of which nothing is known but what was served before. */
  async #noteRefused({ message, problems }: CatalogFault): Promise<number> {
    this.#record.change({ problems });
    await this.#record.note(
      { type: 'Progressing', status: 'False', reason: 'Blocked', message },
      this.#content === undefined ? noContent : served,
    );
    return Infinity;
  }

  async #noteFailure(manifest: OriginManifest, error: unknown): Promise<number> {
    const { logger, random } = this.#shared;
    const { message, problems } = joinFaults(manifest.fault, describeFault(error));
    const isBlocked = isAboutContent(error) && isPinned(manifest.origin);
    const waitMs = isBlocked ? Infinity : getRetryWait(this.#failures++, random());
    const progressing = this.record.conditions.find(({ type }) => type === 'Progressing');
    const { name, labels, priority, isAvailable } = recordOfManifest(manifest);
    this.#record.change({ name, labels, priority, isAvailable, problems });
    if (this.#content !== undefined) this.#serve(this.#content, manifest);
    // The same trouble again is only of interest to those who look for it.
    const isNew = progressing?.message !== message || !['Retrying', 'Blocked'].includes(progressing.reason);
    const next = isBlocked ? 'not tried again' : `tried again in ${Math.round(waitMs / 1000)} s`;
    const still = this.#content === undefined ? '' : '; what was served before still is';
    logger.log(
      isNew ? 'warn' : 'debug',
      `catalog ${name}: ${message.replaceAll('\n', '; ')}; ${next}${still}`,
    );
    await this.#record.note(
      isBlocked
        ? { type: 'Progressing', status: 'False', reason: 'Blocked', message }
        : { type: 'Progressing', status: 'True', reason: 'Retrying', message },
      this.#content === undefined ? noContent : served,
    );
    return waitMs;
  }
}

type OriginManifest = KeptManifest & { origin: CatalogPlace };

/** Whether looking again can only find the same: the content itself is wrong, not the way to it. */
function isAboutContent(error: unknown): boolean {
  const codes = ['SYNTAX', 'INVALID', 'UNSUPPORTED', 'LIMIT', 'UNSAFE'];
  return error instanceof OpmateError && codes.includes(error.code);
}

/** Opens a catalog when it is first read, which the store may find that it need not be. */
function openLazily(open: () => Promise<CatalogSource>): Pick<Catalog, 'metas' | 'close'> {
  let source: CatalogSource | undefined;
  return {
    async *metas(options) {
      source ??= await open();
      yield* source.catalog.metas(options);
    },
    async close() {
      await source?.close();
    },
  };
}
