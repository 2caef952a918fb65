import path from 'node:path';
import { getMessage } from '../../core/errors.js';
import { createLimiter } from '../../core/limiter.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { compareBytes } from '../../core/order.js';
import { findCatalogNameFault } from '../http/catalog-names.js';
import type { CatalogManifest } from './catalog-manifest.js';
import type { RefusedManifest } from './catalog-manifests.js';
import { CatalogRecords, getContentsDirectory } from './catalog-records.js';
import { type CatalogRecord, type KeptManifest, toCatalogFault, joinFaults } from './catalog-status.js';
import { pruneContents, removeContent } from './content-store.js';
import { type KeeperClock, type KeeperOptions, KeptCatalog, type Shared } from './kept-catalog.js';

/** Interval of the search for unreferenced contents. */
const sweepMs = 3_600_000;
/** Maximum catalogs being unpacked. */
const maxUnpacking = 2;
/** Maximum stored catalogs being checked, at up to 2 MiB each. */
const maxRestoring = 8;

/**
 * Keeps catalogs up to date with their manifests: looks at each origin, stores a new state completely, and then serves it.
 * Failures are logged and retried without delaying other catalogs.
 */
export class CatalogKeeper {
  readonly #held: KeeperOptions['held'];
  readonly #clock: KeeperClock;
  readonly #logger: Logger;
  readonly #records: CatalogRecords | undefined;
  readonly #contents: string | undefined;
  readonly #keeps = new Map<string, KeptCatalog>();
  readonly #stop = new AbortController();
  readonly #shared: Shared;
  readonly #sweeping: Promise<void>;

  constructor(options: KeeperOptions) {
    const { held, storage, clock, logger = silentLogger } = options;
    this.#held = held;
    this.#clock = clock;
    this.#logger = logger;
    this.#records = storage === undefined ? undefined : new CatalogRecords(storage);
    this.#contents = storage === undefined ? undefined : getContentsDirectory(storage);
    this.#shared = {
      ...options,
      now: () => clock.now(),
      logger,
      records: this.#records,
      contents: this.#contents,
      turns: createLimiter(maxUnpacking),
      restoring: createLimiter(maxRestoring),
      stop: this.#stop.signal,
      changed: () => this.#checkReady(),
      discard: (hash) =>
        this.#changeContents(async (directory, used) => {
          if (!used.has(hash)) await removeContent(directory, hash);
        }),
    };
    this.#sweeping = this.#sweepRegularly();
  }

  /** Returns the records of all catalogs, sorted by name. */
  getRecords(): CatalogRecord[] {
    return [...this.#keeps.values()].map(({ record }) => record).sort((a, b) => compareBytes(a.name, b.name));
  }

  /** Changes the directory of contents, knowing the hashes in use. Failures are logged. */
  async #changeContents(
    change: (directory: string, used: ReadonlySet<string>) => Promise<void>,
  ): Promise<void> {
    if (this.#contents === undefined || this.#records === undefined) return;
    try {
      const hashes = [...this.getRecords(), ...(await this.#records.list())].map(
        ({ contentHash }) => contentHash,
      );
      await change(this.#contents, new Set(hashes.filter((hash) => hash !== undefined)));
    } catch (error) {
      this.#logger.log('debug', `${this.#contents}: not removed: ${getMessage(error)}`);
    }
  }

  sweep(): Promise<void> {
    // Spares contents of the last hour: other processes may not have written their records yet.
    return this.#changeContents((directory, used) => pruneContents(directory, used, this.#clock.now()));
  }

  async #sweepRegularly(): Promise<void> {
    await this.#records?.sweep();
    while (!this.#stop.signal.aborted) {
      await this.sweep();
      await this.#clock.wait(sweepMs, this.#stop.signal);
    }
  }

  /** Returns the catalogs that a refused manifest has described, else one with nothing but its fault. */
  #findDescribed(
    { name, file }: RefusedManifest,
    wanted: ReadonlyMap<string, KeptManifest>,
    stored: readonly CatalogRecord[],
  ): KeptManifest[] {
    const matches = (item: { name: string; file?: string | undefined }): boolean =>
      name === undefined
        ? path.basename(item.file ?? '') === path.basename(file) &&
          (wanted.get(item.name)?.fault !== undefined || !wanted.has(item.name))
        : item.name === name;
    const kept = [...this.#keeps.values()].map(({ manifest }) => manifest).filter(matches);
    if (kept.length > 0) return kept;
    const before = stored.filter((record) => matches(record) && !this.#keeps.has(record.name));
    if (before.length > 0) return before.map((record) => createPlaceholder(record, file));
    const shown = name ?? toCatalogName(file);
    if (shown === undefined || wanted.has(shown)) return [];
    return [createPlaceholder({ name: shown, labels: {}, priority: 0, isAvailable: false }, file)];
  }

  /** Marks the set as ready once every catalog is served or has failed, and one is served if any is available. */
  #checkReady(): void {
    const all = [...this.#keeps.values()];
    const isAvailable = all.some(({ record }) => record.isAvailable);
    if (all.every(({ isTried }) => isTried) && (!isAvailable || this.#held.list().length > 0))
      this.#held.markReady();
  }

  /**
   * Adds, changes and removes catalogs to match the manifests. Catalogs of a refused manifest stay as they are, also
   * after a restart; their records have its problems.
   */
  async apply(
    manifests: readonly CatalogManifest[],
    refused: readonly RefusedManifest[] = [],
  ): Promise<void> {
    const wanted = new Map<string, KeptManifest>(manifests.map((manifest) => [manifest.name, manifest]));
    const stored = (await this.#records?.list().catch(() => [])) ?? [];
    for (const refusedManifest of refused) {
      const fault = toCatalogFault(refusedManifest.error);
      for (const manifest of this.#findDescribed(refusedManifest, wanted, stored)) {
        const before = wanted.get(manifest.name)?.fault;
        wanted.set(manifest.name, { ...manifest, fault: joinFaults(before, fault) });
      }
    }
    this.#held.expect([...wanted.values()].filter(({ isAvailable }) => isAvailable).map(({ name }) => name));
    for (const [name, keep] of this.#keeps) {
      if (wanted.has(name)) continue;
      this.#keeps.delete(name);
      this.#logger.log('info', `catalog ${name}: removed`);
      await keep.remove();
    }
    // Catalogs from before the last stop.
    for (const { name } of stored) {
      if (!wanted.has(name)) await this.#records?.remove(name).catch(() => undefined);
    }
    for (const [name, manifest] of wanted) {
      const keep = this.#keeps.get(name);
      if (keep === undefined) this.#keeps.set(name, new KeptCatalog(manifest, this.#shared));
      else keep.change(manifest);
    }
    this.#checkReady();
  }

  /** Waits until all stored contents have been checked, and are served if intact. */
  async restored(): Promise<void> {
    await Promise.all([...this.#keeps.values()].map((keep) => keep.restored));
  }

  /** Ends all work and marks all records as not serving. Contents stay. */
  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all([...this.#keeps.values()].map((keep) => keep.end()));
    await this.#sweeping;
  }
}

/** Creates a placeholder for the refused manifest in `file` from a record. */
function createPlaceholder(
  record: Pick<CatalogRecord, 'name' | 'labels' | 'priority' | 'isAvailable' | 'originKey'>,
  file: string,
): KeptManifest {
  const { name, labels, priority, isAvailable, originKey = '' } = record;
  const unknown = { pollMs: undefined, origin: undefined, pullSecrets: [], key: '' };
  return { name, labels, priority, isAvailable, file, originKey, ...unknown };
}

/** Converts a file name to a catalog name; undefined where that is invalid. */
function toCatalogName(file: string): string | undefined {
  const name = path
    .basename(file)
    .toLowerCase()
    .replace(/[^a-z0-9.]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '');
  return findCatalogNameFault(name) === undefined ? name : undefined;
}
