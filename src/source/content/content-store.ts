import type { ArchiveLimits } from '../../archive/limits.js';
import { readdir, utimes } from 'node:fs/promises';
import path from 'node:path';
import { lstatIfPresent, statIfPresent } from '../../files/file-status.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { isDigest, parseDigest } from '../../core/digest.js';
import { OpmateError, fileError, getMessage, systemCode } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { makeDirectory } from '../../files/make-directory.js';
import { moveWhole, removeWhole } from '../../files/move-whole.js';
import { sweepLeftovers } from '../../files/staging.js';
import { type ContentTree, hashOfTree, readTree } from '../drivers/file-tree.js';

/** Retention of unused content, in milliseconds. */
const retentionMs = 30 * 24 * 60 * 60 * 1000;
const namePattern = /^sha256-[0-9a-f]{64}$/;

/** A cache of unpacked content, with one directory per hash. */
export interface ContentStore {
  /** Directory for unpacking trees before `put`, on the same file system. */
  stagingDirectory: string;
  /** Returns stored content after verifying all its files; damaged content is removed. Undefined if missing. */
  find(
    content: string,
    options?: { limits?: ArchiveLimits | undefined } & CancelOptions,
  ): Promise<StoredContent | undefined>;
  /** Moves a tree into the store and returns its directory, or the original one if another process stored it first. */
  put(content: string, directory: string): Promise<string>;
}

interface StoredContent {
  directory: string;
  tree: ContentTree;
}

/**
 * Opens a store, creating its directory and pruning content unused for 30 days. Processes can share it: content is
 * added by rename and verified on each use. Returns undefined, with a warning, if the directory is not writable.
 */
export async function openContentStore(options: {
  directory: string;
  now: Date;
  logger?: Logger | undefined;
}): Promise<ContentStore | undefined> {
  const { directory, now, logger = silentLogger } = options;
  const stagingDirectory = path.join(directory, 'tmp');
  try {
    await makeDirectory(stagingDirectory, 0o700);
    await sweepLeftovers(stagingDirectory, now);
    await prune(directory, now);
  } catch (error) {
    logger.log('warn', `${directory}: content store not used: ${getMessage(error)}`);
    return undefined;
  }
  const getDirectory = (content: string): string =>
    path.join(directory, `sha256-${parseDigest(content).hex}`);
  return {
    stagingDirectory,
    async find(content, { limits, signal } = {}) {
      if (!isDigest(content)) return undefined;
      const target = getDirectory(content);
      if ((await statIfPresent(target)) === undefined) return undefined;
      let problem = 'hash mismatch';
      try {
        const tree = await readTree(target, { limits, signal });
        if (hashOfTree(tree) === content) {
          await utimes(target, now, now).catch(() => undefined);
          return { directory: target, tree };
        }
      } catch (error) {
        // Content beyond the current limits is not damaged.
        if (error instanceof OpmateError && ['CANCELLED', 'LIMIT'].includes(error.code)) throw error;
        problem = getMessage(error);
      }
      logger.log('warn', `${target}: damaged, fetching again: ${problem}`);
      // Removed by rename, so that no process reads partial content.
      await removeWhole(target, stagingDirectory).catch(() => undefined);
      return undefined;
    },
    async put(content, tree) {
      const target = getDirectory(content);
      try {
        await moveWhole(tree, target);
      } catch (error) {
        if (!['ENOTEMPTY', 'EEXIST'].includes(systemCode(error) ?? '')) throw fileError(target, error);
        return tree;
      }
      return target;
    },
  };
}

async function prune(directory: string, now: Date): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!namePattern.test(name)) continue;
    const target = path.join(directory, name);
    const stats = await lstatIfPresent(target);
    if (stats === undefined || now.getTime() - stats.mtimeMs < retentionMs) continue;
    await removeWhole(target, path.join(directory, 'tmp')).catch(() => undefined);
  }
}
