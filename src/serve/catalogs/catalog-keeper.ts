import path from 'node:path';
import { getMessage } from '../../core/errors.js';
import { createLimiter } from '../../core/limiter.js';
import { silentLogger } from '../../core/log.js';
import { compareBytes } from '../../core/order.js';
import type { CatalogManifest } from './catalog-manifest.js';
import type { RefusedManifest } from './catalog-manifests.js';
import { CatalogRecords, getContentsDirectory } from './catalog-records.js';
import { type CatalogRecord, describeFault, joinFaults } from './catalog-status.js';
import { pruneContents, removeContents } from './content-store.js';
import { KeptCatalog, type KeeperOptions, type Shared } from './kept-catalog.js';
import { type KeptManifest, createPlaceholder, toCatalogName } from './kept-manifest.js';

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
  readonly #options: KeeperOptions;
  readonly #keeps = new Map<string, KeptCatalog>();
  readonly #shared: Shared;
  readonly #stop = new AbortController();
  readonly #sweeping: Promise<void>;

  constructor(options: KeeperOptions) {
    const { storage, logger = silentLogger } = options;
    this.#options = options;
    this.#shared = {
      ...options,
      logger,
      records: storage === undefined ? undefined : new CatalogRecords(storage),
      contents: storage === undefined ? undefined : getContentsDirectory(storage),
      turns: createLimiter(maxUnpacking),
      restoring: createLimiter(maxRestoring),
      stop: this.#stop.signal,
      changed: () => this.#checkReady(),
      discard: (hash) => this.#discard(hash),
    };
    this.#sweeping = this.#sweepRegularly();
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
    const records = await this.#readRecords();
    for (const refusedManifest of refused) {
      const fault = describeFault(refusedManifest.error);
      for (const manifest of this.#replaceManifests(refusedManifest, wanted, records)) {
        const before = wanted.get(manifest.name)?.fault;
        wanted.set(manifest.name, { ...manifest, fault: joinFaults(before, fault) });
      }
    }
    this.#options.held.expect(
      [...wanted.values()].filter(({ isAvailable }) => isAvailable).map(({ name }) => name),
    );
    for (const [name, keep] of this.#keeps) {
      if (wanted.has(name)) continue;
      this.#keeps.delete(name);
      this.#shared.logger.log('info', `catalog ${name}: removed`);
      await keep.remove();
    }
    // Catalogs from before the last stop.
    for (const record of records) {
      if (!wanted.has(record.name)) await this.#shared.records?.remove(record.name).catch(() => undefined);
    }
    for (const [name, manifest] of wanted) {
      const keep = this.#keeps.get(name);
      if (keep !== undefined) keep.change(manifest);
      else {
        const added = new KeptCatalog(manifest, this.#shared);
        this.#keeps.set(name, added);
        added.start();
      }
    }
    this.#checkReady();
  }

  /** Returns the catalogs that a refused manifest has described, else one with nothing but its fault. */
  #replaceManifests(
    { name, file }: RefusedManifest,
    wanted: ReadonlyMap<string, KeptManifest>,
    records: readonly CatalogRecord[],
  ): KeptManifest[] {
    const matches = (item: { name: string; file?: string | undefined }): boolean =>
      name === undefined
        ? path.basename(item.file ?? '') === path.basename(file) &&
          (wanted.get(item.name)?.fault !== undefined || !wanted.has(item.name))
        : item.name === name;
    const kept = [...this.#keeps.values()].map((keep) => keep.manifest).filter(matches);
    if (kept.length > 0) return kept;
    const before = records.filter((record) => matches(record) && !this.#keeps.has(record.name));
    if (before.length > 0) return before.map((record) => createPlaceholder(record, file));
    const shown = name ?? toCatalogName(file);
    if (shown === undefined || wanted.has(shown)) return [];
    return [createPlaceholder({ name: shown, labels: {}, priority: 0, isAvailable: false }, file)];
  }

  /** Waits until all stored contents have been checked, and are served if intact. */
  async restored(): Promise<void> {
    await Promise.all([...this.#keeps.values()].map((keep) => keep.restored));
  }

  /** Returns the records of all catalogs, sorted by name. */
  records(): CatalogRecord[] {
    const records = [...this.#keeps.values()].map((keep) => keep.record);
    return records.sort((a, b) => compareBytes(a.name, b.name));
  }

  /** Removes unreferenced contents. */
  async sweep(): Promise<void> {
    const { contents, records, clock, logger } = this.#shared;
    if (contents === undefined || records === undefined) return;
    try {
      const kept = new Set<string>();
      for (const { contentHash } of [...this.records(), ...(await records.list())]) {
        if (contentHash !== undefined) kept.add(contentHash);
      }
      // Spares contents of the last hour: other processes may not have written their records yet.
      await pruneContents(contents, kept, clock.now());
    } catch (error) {
      logger.log('debug', `${contents}: not swept: ${getMessage(error)}`);
    }
  }

  async #discard(hash: string): Promise<void> {
    const { contents, records, logger } = this.#shared;
    if (contents === undefined || records === undefined) return;
    try {
      const used = [...this.records(), ...(await records.list())];
      if (used.some(({ contentHash }) => contentHash === hash)) return;
      await removeContents(contents, [hash]);
    } catch (error) {
      logger.log('debug', `${contents}: ${hash}: not removed: ${getMessage(error)}`);
    }
  }

  /** Ends all work and marks all records as not serving. Contents stay. */
  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all([...this.#keeps.values()].map((keep) => keep.end()));
    await this.#sweeping;
  }

  async #readRecords(): Promise<CatalogRecord[]> {
    return (await this.#shared.records?.list().catch(() => [])) ?? [];
  }

  async #sweepRegularly(): Promise<void> {
    const { clock } = this.#options;
    await this.#shared.records?.sweep();
    while (!this.#stop.signal.aborted) {
      await this.sweep();
      await clock.wait(sweepMs, this.#stop.signal);
    }
  }

  /** Marks the set as ready once every catalog is served or has failed, and one is served if any is available. */
  #checkReady(): void {
    const keeps = [...this.#keeps.values()];
    const isTried = keeps.every((keep) => keep.isTried);
    const isAvailable = keeps.some((keep) => keep.record.isAvailable);
    if (isTried && (!isAvailable || this.#options.held.list().length > 0)) this.#options.held.markReady();
  }
}
