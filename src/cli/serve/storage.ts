import path from 'node:path';
import { computeDigest, parseDigest } from '../../core/digest.js';
import { type CommandContext, userCacheDirectory } from '../context.js';

/**
 * Returns the storage directory of `serve --catalogs`: `--storage`, else a directory per manifest directory below the
 * cache directory.
 */
export function getStorage(
  context: CommandContext,
  { storage, catalogs }: { storage?: string | undefined; catalogs: string },
): string {
  const { workingDirectory } = context;
  if (storage !== undefined) return path.resolve(workingDirectory, storage);
  const { hex } = parseDigest(computeDigest(path.resolve(workingDirectory, catalogs)));
  return path.join(getStorages(context), hex.slice(0, 16));
}

/** Returns the parent of default storage directories. */
export function getStorages(context: CommandContext): string {
  const { environment, workingDirectory } = context;
  const cache = environment['OPMATE_CACHE_DIR'] || environment['OLM_CACHE_DIR'];
  return path.join(cache ? path.resolve(workingDirectory, cache) : userCacheDirectory(context), 'catalogs');
}
