import path from 'node:path';
import { getMessage } from '../../core/errors.js';
import { createLimiter } from '../../core/limiter.js';
import { silentLogger } from '../../core/log.js';
import { compareBytes } from '../../core/order.js';
import { findCatalogNameFault } from '../http/catalog-names.js';
import type { CatalogManifest } from './catalog-manifest.js';
import type { RefusedManifest } from './catalog-manifests.js';
import { CatalogRecords, getContentsDirectory } from './catalog-records.js';
import { type CatalogRecord, type KeptManifest, toCatalogFault, joinFaults } from './catalog-status.js';
import { pruneContents, removeContent } from './content-store.js';
import { type KeeperOptions, type KeptCatalog, type Shared, keepCatalog } from './kept-catalog.js';

/** Interval of the search for unreferenced contents. */
const sweepMs = 3_600_000;
/** Maximum catalogs being unpacked. */
const maxUnpacking = 2;
/** Maximum stored catalogs being checked, at up to 2 MiB each. */
const maxRestoring = 8;

export type CatalogKeeper = ReturnType<typeof createCatalogKeeper>;

/**
 * Keeps catalogs up to date with their manifests: looks at each origin, stores a new state completely, and then serves it.
 * Failures are logged and retried without delaying other catalogs.
 */
export function createCatalogKeeper(options: KeeperOptions) {
  const { held, storage, clock, logger = silentLogger } = options;
  const records = storage === undefined ? undefined : new CatalogRecords(storage);
  const contents = storage === undefined ? undefined : getContentsDirectory(storage);
  const keeps = new Map<string, KeptCatalog>();
  const stop = new AbortController();
  const shared: Shared = {
    ...options,
    now: () => clock.now(),
    logger,
    records,
    contents,
    turns: createLimiter(maxUnpacking),
    restoring: createLimiter(maxRestoring),
    stop: stop.signal,
    changed: checkReady,
    discard: (hash) =>
      changeContents(async (directory, used) => {
        if (!used.has(hash)) await removeContent(directory, hash);
      }),
  };

  /** Returns the records of all catalogs, sorted by name. */
  function getRecords(): CatalogRecord[] {
    return [...keeps.values()].map(({ record }) => record).sort((a, b) => compareBytes(a.name, b.name));
  }

  /** Changes the directory of contents, knowing the hashes in use. Failures are logged. */
  async function changeContents(
    change: (directory: string, used: ReadonlySet<string>) => Promise<void>,
  ): Promise<void> {
    if (contents === undefined || records === undefined) return;
    try {
      const hashes = [...getRecords(), ...(await records.list())].map(({ contentHash }) => contentHash);
      await change(contents, new Set(hashes.filter((hash) => hash !== undefined)));
    } catch (error) {
      logger.log('debug', `${contents}: not removed: ${getMessage(error)}`);
    }
  }

  function sweep(): Promise<void> {
    // Spares contents of the last hour: other processes may not have written their records yet.
    return changeContents((directory, used) => pruneContents(directory, used, clock.now()));
  }

  async function sweepRegularly(): Promise<void> {
    await records?.sweep();
    while (!stop.signal.aborted) {
      await sweep();
      await clock.wait(sweepMs, stop.signal);
    }
  }

  /** Returns the catalogs that a refused manifest has described, else one with nothing but its fault. */
  function findDescribed(
    { name, file }: RefusedManifest,
    wanted: ReadonlyMap<string, KeptManifest>,
    stored: readonly CatalogRecord[],
  ): KeptManifest[] {
    const matches = (item: { name: string; file?: string | undefined }): boolean =>
      name === undefined
        ? path.basename(item.file ?? '') === path.basename(file) &&
          (wanted.get(item.name)?.fault !== undefined || !wanted.has(item.name))
        : item.name === name;
    const kept = [...keeps.values()].map(({ manifest }) => manifest).filter(matches);
    if (kept.length > 0) return kept;
    const before = stored.filter((record) => matches(record) && !keeps.has(record.name));
    if (before.length > 0) return before.map((record) => createPlaceholder(record, file));
    const shown = name ?? toCatalogName(file);
    if (shown === undefined || wanted.has(shown)) return [];
    return [createPlaceholder({ name: shown, labels: {}, priority: 0, isAvailable: false }, file)];
  }

  /** Marks the set as ready once every catalog is served or has failed, and one is served if any is available. */
  function checkReady(): void {
    const all = [...keeps.values()];
    const isAvailable = all.some(({ record }) => record.isAvailable);
    if (all.every(({ isTried }) => isTried) && (!isAvailable || held.list().length > 0)) held.markReady();
  }

  const sweeping = sweepRegularly();
  return {
    getRecords,
    sweep,

    /**
     * Adds, changes and removes catalogs to match the manifests. Catalogs of a refused manifest stay as they are, also
     * after a restart; their records have its problems.
     */
    async apply(
      manifests: readonly CatalogManifest[],
      refused: readonly RefusedManifest[] = [],
    ): Promise<void> {
      const wanted = new Map<string, KeptManifest>(manifests.map((manifest) => [manifest.name, manifest]));
      const stored = (await records?.list().catch(() => [])) ?? [];
      for (const refusedManifest of refused) {
        const fault = toCatalogFault(refusedManifest.error);
        for (const manifest of findDescribed(refusedManifest, wanted, stored)) {
          const before = wanted.get(manifest.name)?.fault;
          wanted.set(manifest.name, { ...manifest, fault: joinFaults(before, fault) });
        }
      }
      held.expect([...wanted.values()].filter(({ isAvailable }) => isAvailable).map(({ name }) => name));
      for (const [name, keep] of keeps) {
        if (wanted.has(name)) continue;
        keeps.delete(name);
        logger.log('info', `catalog ${name}: removed`);
        await keep.remove();
      }
      // Catalogs from before the last stop.
      for (const { name } of stored) {
        if (!wanted.has(name)) await records?.remove(name).catch(() => undefined);
      }
      for (const [name, manifest] of wanted) {
        const keep = keeps.get(name);
        if (keep === undefined) keeps.set(name, keepCatalog(manifest, shared));
        else keep.change(manifest);
      }
      checkReady();
    },

    /** Waits until all stored contents have been checked, and are served if intact. */
    async restored(): Promise<void> {
      await Promise.all([...keeps.values()].map((keep) => keep.restored));
    },

    /** Ends all work and marks all records as not serving. Contents stay. */
    async close(): Promise<void> {
      stop.abort();
      await Promise.all([...keeps.values()].map((keep) => keep.end()));
      await sweeping;
    },
  };
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
