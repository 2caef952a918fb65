import path from 'node:path';
import { getMessage } from '../../core/errors.js';
import { createLimiter } from '../../core/limiter.js';
import { silentLogger } from '../../core/log.js';
import { compareBytes } from '../../core/order.js';
import type { CatalogManifest } from './catalog-manifest.js';
import type { RefusedManifest } from './catalog-manifests.js';
import { CatalogRecords, getContents } from './catalog-records.js';
import { type CatalogRecord, describeFault, joinFaults } from './catalog-status.js';
import { pruneContents, removeContents } from './content-store.js';
import { KeptCatalog, type KeeperOptions, type Shared } from './kept-catalog.js';
import { type KeptManifest, manifestOfRecord, rowName } from './kept-manifest.js';

/** How often contents that nobody needs are looked for. */
const sweepMs = 3_600_000;
/** Catalogs that are unpacked at the same time. */
const maxUnpacking = 2;
/** Stored catalogs that are checked at the same time; each takes up to 4 MiB for it. */
const maxRestoring = 8;

/**
 * Keeps catalogs as their manifests say: looks at each origin, stores another state whole, and only then serves it
 * instead of the one before. What fails is tried again later, and told; other catalogs do not wait for it.
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
      contents: storage === undefined ? undefined : getContents(storage),
      turns: createLimiter(maxUnpacking),
      restoring: createLimiter(maxRestoring),
      stop: this.#stop.signal,
      changed: () => this.#checkReady(),
      discard: (hash) => this.#discard(hash),
    };
    this.#sweeping = this.#sweepAgainAndAgain();
  }

  /**
   * Makes the catalogs those of the manifests: new ones are begun, others changed or removed. Those of a manifest that is
   * refused stay as they are, also after a restart, and their records say why.
   */
  async apply(
    manifests: readonly CatalogManifest[],
    refused: readonly RefusedManifest[] = [],
  ): Promise<void> {
    const wanted = new Map<string, KeptManifest>(manifests.map((manifest) => [manifest.name, manifest]));
    const records = await this.#recordsLeft();
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
    // Catalogs that a manifest has had before the last stop.
    for (const record of records) {
      if (!wanted.has(record.name)) await this.#shared.records?.remove(record.name).catch(() => undefined);
    }
    for (const [name, manifest] of wanted) {
      const keep = this.#keeps.get(name);
      if (keep !== undefined) keep.change(manifest);
      else {
        const made = new KeptCatalog(manifest, this.#shared);
        this.#keeps.set(name, made);
        made.start();
      }
    }
    this.#checkReady();
  }

  /** What stands for a refused manifest: the catalogs that it has described, else nothing but its fault. */
  #replaceManifests(
    { name, file }: RefusedManifest,
    wanted: ReadonlyMap<string, KeptManifest>,
    records: readonly CatalogRecord[],
  ): KeptManifest[] {
    const isMeant = (item: { name: string; file?: string | undefined }): boolean =>
      name === undefined
        ? path.basename(item.file ?? '') === path.basename(file) &&
          (wanted.get(item.name)?.fault !== undefined || !wanted.has(item.name))
        : item.name === name;
    const kept = [...this.#keeps.values()].map((keep) => keep.manifest).filter(isMeant);
    if (kept.length > 0) return kept;
    const before = records.filter((record) => isMeant(record) && !this.#keeps.has(record.name));
    if (before.length > 0) return before.map((record) => manifestOfRecord(record, file));
    const shown = name ?? rowName(file);
    if (shown === undefined || wanted.has(shown)) return [];
    return [manifestOfRecord({ name: shown, labels: {}, priority: 0, isAvailable: false }, file)];
  }

  /** Waits until all that was stored before the last stop is checked, and served where it is sound. */
  async restored(): Promise<void> {
    await Promise.all([...this.#keeps.values()].map((keep) => keep.restored));
  }

  /** The records of all catalogs, sorted by name. */
  records(): CatalogRecord[] {
    const records = [...this.#keeps.values()].map((keep) => keep.record);
    return records.sort((a, b) => compareBytes(a.name, b.name));
  }

  /** Removes contents that no catalog has any more. */
  async sweep(): Promise<void> {
    const { contents, records, clock, logger } = this.#shared;
    if (contents === undefined || records === undefined) return;
    try {
      const kept = new Set<string>();
      for (const { contentHash } of [...this.records(), ...(await records.list())]) {
        if (contentHash !== undefined) kept.add(contentHash);
      }
      // Leaving storage to what is unused for an hour is for other processes, which may not have written records yet.
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

  /** Ends all work, and says in the records that nothing is served any more. The contents stay. */
  async close(): Promise<void> {
    this.#stop.abort();
    await Promise.all([...this.#keeps.values()].map((keep) => keep.end()));
    await this.#sweeping;
  }

  async #recordsLeft(): Promise<CatalogRecord[]> {
    return (await this.#shared.records?.list().catch(() => [])) ?? [];
  }

  async #sweepAgainAndAgain(): Promise<void> {
    const { clock } = this.#options;
    await this.#shared.records?.sweep();
    while (!this.#stop.signal.aborted) {
      await this.sweep();
      await clock.wait(sweepMs, this.#stop.signal);
    }
  }

  /** Ready once every catalog is served or has been tried, and one is served where one is wanted. */
  #checkReady(): void {
    const keeps = [...this.#keeps.values()];
    const isTried = keeps.every((keep) => keep.isTried);
    const isWanted = keeps.some((keep) => keep.record.isAvailable);
    if (isTried && (!isWanted || this.#options.held.list().length > 0)) this.#options.held.markReady();
  }
}
