import { type FSWatcher, watch } from 'node:fs';
import { OpmateError, messageOf } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import type { KeeperClock } from './catalog-keeper.js';
import { type CatalogManifest, manifestsVersion, readCatalogManifests } from './catalog-manifests.js';

/** How long the directory must be quiet: editors and copies take several steps. */
const settleMs = 200;
/** How often it is looked at where no change is told, as on network file systems. */
const rescanMs = 30_000;

export interface WatchOptions {
  directory: string;
  clock: KeeperClock;
  /** Takes the manifests, every time that they have changed. */
  use: (manifests: CatalogManifest[]) => Promise<void>;
  signal: AbortSignal;
  logger?: Logger | undefined;
}

/**
 * Reads the manifests of a directory, and again whenever they change, until the signal fires. The first reading throws
 * OpmateError for what is wrong; later ones tell the logger, and everything stays as it was.
 */
export async function watchManifests(options: WatchOptions): Promise<{ done: Promise<void> }> {
  const { directory, use, logger = silentLogger } = options;
  const version = await manifestsVersion(directory);
  await use(await readCatalogManifests(directory, logger));
  return { done: follow(options, version) };
}

async function follow(options: WatchOptions, version: string): Promise<void> {
  const { directory, clock, use, signal, logger = silentLogger } = options;
  let wake = new AbortController();
  const watcher = startWatching(directory, () => wake.abort(), logger);
  let known = version;
  let fault: string | undefined;
  try {
    while (!signal.aborted) {
      await clock.wait(rescanMs, AbortSignal.any([wake.signal, signal]));
      if (wake.signal.aborted) await clock.wait(settleMs, signal);
      if (signal.aborted) return;
      wake = new AbortController();
      try {
        const found = await manifestsVersion(directory);
        if (found === known && fault === undefined) continue;
        const manifests = await readCatalogManifests(directory, logger);
        // Written to while it was read: the next look tells more.
        if ((await manifestsVersion(directory)) !== found) {
          wake.abort();
          continue;
        }
        known = found;
        fault = undefined;
        await use(manifests);
      } catch (error) {
        const message = describe(error);
        if (message !== fault) {
          logger.log('error', `${message}; the catalogs stay as they are until this is put right`);
        }
        fault = message;
      }
    }
  } finally {
    watcher?.close();
  }
}

function describe(error: unknown): string {
  if (!(error instanceof OpmateError)) return messageOf(error);
  return error.hint === undefined ? error.message : `${error.message} (${error.hint})`;
}

function startWatching(directory: string, changed: () => void, logger: Logger): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: false }, changed);
    watcher.on('error', (error) => logger.log('debug', `${directory}: not watched: ${messageOf(error)}`));
    return watcher;
  } catch (error) {
    logger.log('debug', `${directory}: not watched: ${messageOf(error)}`);
    return undefined;
  }
}
