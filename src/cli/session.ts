import { existsSync } from 'node:fs';
import path from 'node:path';
import type { ArchiveLimits } from '../archive/limits.js';
import { invalidValue } from '../core/errors.js';
import { openSourceSession, parsePlatform, withChanges } from '../api/session.js';
import type { Platform } from '../oci/image/types.js';
import type { Session } from '../source/session.js';
import { type CommandContext, userCacheDirectory } from './context.js';
import type { GlobalOptions } from './command/global-flags.js';
import { type ClosableLogger, createLogger } from './logger.js';
import { writeAll } from './output.js';

/** A session whose logger the command line can close before it writes data. */
export interface CommandSession extends Session {
  logger: ClosableLogger;
}

/** Runs `work` with a session made from the global options, and closes it afterwards. */
export async function useSession<T>(
  context: CommandContext,
  options: GlobalOptions,
  work: (session: CommandSession) => Promise<T>,
): Promise<T> {
  const logger = createLogger(context, options);
  const { withoutEffect = [] } = options;
  if (withoutEffect.length > 0) logger.log('warn', `no effect: ${withoutEffect.join(', ')}`);
  try {
    const session = await openSourceSession({
      environment: context.environment,
      homeDirectory: context.homeDirectory,
      temporaryDirectory: context.temporaryDirectory,
      workingDirectory: context.workingDirectory,
      architecture: context.architecture,
      platform: options.platform === undefined ? undefined : requirePlatform(options.platform),
      registry: {
        authFile: options.authfile,
        useHttp: options.useHttp === true || options.skipTls === true,
        skipTlsVerify: options.skipTlsVerify === true,
        insecure: options.insecure,
        caFile: options.caFile,
        certDir: options.certDir,
        allowedPrivateHosts: options.allowPrivateHost,
        retryTimeoutMs: options.retryTimeout,
        retryDelayMs: options.retryDelayMs,
        maxAttempts: options.maxAttempts,
        overridesFor: options.overridesFor,
        random: Math.random,
      },
      cacheDirectory: options.cacheDirectory,
      catalogCacheDirectory: findCatalogCache(options, context),
      limits: parseLimits(options),
      followLinks: options.followLinks,
      logger,
      now: context.now,
      signal: context.signal,
    });
    try {
      return await work(withChanges(session, { logger }));
    } finally {
      await session.close();
    }
  } finally {
    logger.close();
  }
}

/** Streams data to stdout; closes the logger before the first piece. */
export async function writePieces(
  { stdout, signal }: CommandContext,
  { logger }: CommandSession,
  pieces: Iterable<string | Buffer> | AsyncIterable<string | Buffer>,
): Promise<void> {
  await writeAll(stdout, pieces, signal, () => logger.close());
}

/** Returns the cache directory of catalog layers; undefined if disabled or without a home directory. */
function findCatalogCache({ catalogCache }: GlobalOptions, context: CommandContext): string | undefined {
  const { environment, homeDirectory, workingDirectory } = context;
  const named = catalogCache ?? environment['OPMATE_CATALOG_CACHE'];
  if (named === 'none') return undefined;
  if (named) return path.resolve(workingDirectory, named);
  return existsSync(homeDirectory) ? path.join(userCacheDirectory(context), 'layers') : undefined;
}

function parseLimits(options: GlobalOptions): Partial<ArchiveLimits> {
  const { maxEntries, maxUnpackedSize, maxRatio } = options;
  return {
    ...(maxEntries !== undefined && { maxEntries }),
    ...(maxUnpackedSize !== undefined && { maxUnpackedSize }),
    ...(maxRatio !== undefined && { maxRatio }),
  };
}

function requirePlatform(text: string): Platform {
  const platform = parsePlatform(text);
  if (platform !== undefined) return platform;
  throw invalidValue('--platform', text, 'not a platform', {
    hint: 'use os/architecture[/variant], e.g. linux/arm64',
  });
}
