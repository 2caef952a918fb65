import { type FSWatcher, watch } from 'node:fs';
import { formatWithHint } from '../../core/diagnostic.js';
import { diagnosticsFrom } from '../../core/diagnostics-error.js';
import { OpmateError, getMessage } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import type { LinkOptions } from '../../files/directory-root.js';
import type { KeeperClock } from './kept-catalog.js';
import { type CatalogManifests, manifestsVersion, readCatalogManifests } from './catalog-manifests.js';

/** How long the directory must be quiet: editors and copies take several steps. */
const settleMs = 200;
/** How often it is looked at where no change is told, as on network file systems. */
const rescanMs = 30_000;

interface WatchOptions extends LinkOptions {
  directory: string;
  clock: KeeperClock;
  /** Takes the manifests, every time that they have changed. */
  use: (manifests: CatalogManifests) => Promise<void>;
  signal: AbortSignal;
  logger?: Logger | undefined;
}

/**
 * Reads the manifests of a directory, and again whenever they change, until the signal fires. Manifests with faults are
 * told to the logger. The first reading throws OpmateError where the directory cannot be used; when a later one fails,
 * the logger is told, and everything stays as it was.
 */
export async function watchManifests(options: WatchOptions): Promise<{ done: Promise<void> }> {
  const { directory, use, logger = silentLogger } = options;
  const version = await manifestsVersion(directory);
  const manifests = await readCatalogManifests(directory, logger, options);
  await use(manifests);
  return { done: follow(options, version, tellRefused(manifests, new Set(), logger)) };
}

/** Logs what is refused and has not been told; returns what is refused now. */
function tellRefused(
  { refused }: CatalogManifests,
  told: ReadonlySet<string>,
  logger: Logger,
): ReadonlySet<string> {
  const messages = new Set(refused.map(({ error }) => describe(error)));
  for (const { file, error } of refused) {
    if (told.has(describe(error))) continue;
    const diagnostics = diagnosticsFrom(error);
    if (diagnostics.length === 1) {
      logger.log('error', `${describe(error)}; other manifests are not affected`);
      continue;
    }
    for (const diagnostic of diagnostics) logger.log('error', formatWithHint(diagnostic));
    const count = diagnostics.length;
    logger.log('error', `${file}: refused, ${count} problems; other manifests are not affected`);
  }
  return messages;
}

async function follow(
  options: WatchOptions,
  version: string,
  refusedBefore: ReadonlySet<string>,
): Promise<void> {
  const { directory, clock, use, signal, logger = silentLogger } = options;
  let wake = new AbortController();
  const watcher = startWatching(directory, () => wake.abort(), logger);
  let known = version;
  let refused = refusedBefore;
  let fault: string | undefined;
  try {
    while (!signal.aborted) {
      await clock.wait(rescanMs, AbortSignal.any([wake.signal, signal]));
      if (wake.signal.aborted) await clock.wait(settleMs, signal);
      if (signal.aborted) return;
      wake = new AbortController();
      try {
        const match = await manifestsVersion(directory);
        if (match === known && fault === undefined) continue;
        const manifests = await readCatalogManifests(directory, logger, options);
        // Written to while it was read: the next look tells more.
        if ((await manifestsVersion(directory)) !== match) {
          wake.abort();
          continue;
        }
        known = match;
        fault = undefined;
        refused = tellRefused(manifests, refused, logger);
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
  if (!(error instanceof OpmateError)) return getMessage(error);
  return error.hint === undefined ? error.message : `${error.message} (${error.hint})`;
}

function startWatching(directory: string, changed: () => void, logger: Logger): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: false }, changed);
    watcher.on('error', (error) => logger.log('debug', `${directory}: not watched: ${getMessage(error)}`));
    return watcher;
  } catch (error) {
    logger.log('debug', `${directory}: not watched: ${getMessage(error)}`);
    return undefined;
  }
}
