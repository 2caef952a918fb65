import { type FSWatcher, watch } from 'node:fs';
import { diagnosticsFrom } from '../../core/diagnostics-error.js';
import { OpmateError, getMessage } from '../../core/errors.js';
import { type Logger, logDiagnostic, silentLogger } from '../../core/log.js';
import type { LinkOptions } from '../../files/directory-root.js';
import type { KeeperClock } from './kept-catalog.js';
import { type CatalogManifests, computeManifestsVersion, readCatalogManifests } from './catalog-manifests.js';

/** Time without changes before reading: editors and copies take several steps. */
const settleMs = 200;
/** Interval of scans where the system reports no changes, as on network file systems. */
const rescanMs = 30_000;

interface WatchOptions extends LinkOptions {
  directory: string;
  /** The directory as the user named it. */
  name: string;
  clock: KeeperClock;
  /** Called with the manifests after each change. */
  use: (manifests: CatalogManifests) => Promise<void>;
  signal: AbortSignal;
  logger?: Logger | undefined;
}

/**
 * Reads the manifests of a directory, and again after each change, until `signal` aborts. Faults of manifests and failures
 * of later readings are logged. The first reading throws OpmateError for an unusable directory.
 */
export async function watchManifests(options: WatchOptions): Promise<{ done: Promise<void> }> {
  const { directory, name, clock, use, signal, logger = silentLogger } = options;
  let known: string | undefined;
  /** Messages of all refused manifests. */
  let logged: ReadonlySet<string> = new Set();
  let fault: string | undefined;

  /** Reads changed manifests; false if they change meanwhile. */
  async function update(): Promise<boolean> {
    const version = await computeManifestsVersion(directory, name);
    if (version === known && fault === undefined) return true;
    const manifests = await readCatalogManifests(directory, logger, options);
    if (known !== undefined && (await computeManifestsVersion(directory, name)) !== version) return false;
    known = version;
    fault = undefined;
    logRefused(manifests);
    await use(manifests);
    return true;
  }

  function logRefused({ refused }: CatalogManifests): void {
    for (const { file, error } of refused) {
      if (logged.has(describe(error))) continue;
      const diagnostics = diagnosticsFrom(error);
      if (diagnostics.length === 1) {
        logger.log('error', `${describe(error)}; other manifests are not affected`);
        continue;
      }
      for (const diagnostic of diagnostics) logDiagnostic(logger, diagnostic);
      const count = diagnostics.length;
      logger.log('error', `${file}: refused, ${count} problems; other manifests are not affected`);
    }
    logged = new Set(refused.map(({ error }) => describe(error)));
  }

  async function follow(): Promise<void> {
    let wake = new AbortController();
    const watcher = startWatching(directory, () => wake.abort(), logger);
    try {
      while (!signal.aborted) {
        await clock.wait(rescanMs, AbortSignal.any([wake.signal, signal]));
        if (wake.signal.aborted) await clock.wait(settleMs, signal);
        if (signal.aborted) return;
        wake = new AbortController();
        try {
          if (!(await update())) wake.abort();
        } catch (error) {
          const message = describe(error);
          if (message !== fault) logger.log('error', `${message}; keeping the previous catalogs`);
          fault = message;
        }
      }
    } finally {
      watcher?.close();
    }
  }

  await update();
  return { done: follow() };
}

function describe(error: unknown): string {
  if (!(error instanceof OpmateError)) return getMessage(error);
  return error.hint === undefined ? error.message : `${error.message} (${error.hint})`;
}

function startWatching(directory: string, onChange: () => void, logger: Logger): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: false }, onChange);
    watcher.on('error', (error) => logger.log('debug', `${directory}: not watched: ${getMessage(error)}`));
    return watcher;
  } catch (error) {
    logger.log('debug', `${directory}: not watched: ${getMessage(error)}`);
    return undefined;
  }
}
