import { OpmateError } from '../core/errors.js';

/** One of several machines that share a plan: `index` from 0, below `count`. */
export interface Shard {
  index: number;
  count: number;
}

/**
 * Reads `I/N`, or what an indexed Kubernetes Job tells its pods; undefined where neither says anything. Throws
 * UsageError.
 */
export function parseShard(
  text: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Shard | undefined {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [text, environment] });
}

/**
 * The part of some images that a shard copies: every image is in exactly one part whatever the order in which they
 * are given, parts are about equal in bytes, and images that share large blobs keep together where that can be.
 */
export function shardOf<T extends { key: string; bytes: number }>(images: readonly T[], shard: Shard): T[] {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [images, shard] });
}
