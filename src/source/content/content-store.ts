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

/** How long unused unpacked content is kept. */
const keptMs = 30 * 24 * 60 * 60 * 1000;
const namePattern = /^sha256-[0-9a-f]{64}$/;

/** Unpacked content by its hash, in directories below one. */
export interface ContentStore {
  /** Where trees are unpacked before they are put here: on the same file system. */
  stagingDirectory: string;
  /** The directory of content that is here, every file of it read and checked; what is damaged is removed. */
  find(
    content: string,
    options?: { limits?: ArchiveLimits | undefined } & CancelOptions,
  ): Promise<StoredContent | undefined>;
  /** Moves a tree here and returns where it is now: where it was, if another process was faster. */
  put(content: string, directory: string): Promise<string>;
}

interface StoredContent {
  directory: string;
  tree: ContentTree;
}

/**
 * Opens a store in a directory, which is made. Any number of processes may use it at a time: content appears whole, by
 * rename, and is checked whenever it is used. What nobody has asked for in 30 days is removed. Undefined, after a
 * warning, where it cannot be written.
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
    logger.log('warn', `${directory}: no content is kept: ${getMessage(error)}`);
    return undefined;
  }
  const getDirectory = (content: string): string =>
    path.join(directory, `sha256-${parseDigest(content).hex}`);
  return {
    stagingDirectory,
    async find(content, { limits, signal } = {}) {
      if (!isDigest(content)) return undefined;
      const place = getDirectory(content);
      if ((await statIfPresent(place)) === undefined) return undefined;
      let problem = 'it is not what its name says';
      try {
        const tree = await readTree(place, { limits, signal });
        if (hashOfTree(tree) === content) {
          await utimes(place, now, now).catch(() => undefined);
          return { directory: place, tree };
        }
      } catch (error) {
        // What is larger than is wanted now is not damaged.
        if (error instanceof OpmateError && ['CANCELLED', 'LIMIT'].includes(error.code)) throw error;
        problem = getMessage(error);
      }
      logger.log('warn', `${place}: damaged, fetching it again: ${problem}`);
      // In one step, so that nobody finds half of it.
      await removeWhole(place, stagingDirectory).catch(() => undefined);
      return undefined;
    },
    async put(content, tree) {
      const place = getDirectory(content);
      try {
        await moveWhole(tree, place);
      } catch (error) {
        if (!['ENOTEMPTY', 'EEXIST'].includes(systemCode(error) ?? '')) throw fileError(place, error);
        return tree;
      }
      return place;
    },
  };
}

async function prune(directory: string, now: Date): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!namePattern.test(name)) continue;
    const place = path.join(directory, name);
    const stats = await lstatIfPresent(place);
    if (stats === undefined || now.getTime() - stats.mtimeMs < keptMs) continue;
    await removeWhole(place, path.join(directory, 'tmp')).catch(() => undefined);
  }
}
