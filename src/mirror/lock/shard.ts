import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { compareBytes } from '../../core/order.js';

/** One of several machines that share a plan: `index` from 0, below `count`. */
export interface Shard {
  index: number;
  count: number;
}

const maxShards = 10_000;

/**
 * Reads `I/N`, or what an indexed Kubernetes Job tells its pods; undefined where neither says anything. Throws
 * UsageError.
 */
export function parseShard(
  text: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Shard | undefined {
  if (text !== undefined) {
    const [, index, count] = /^([^/]*)\/([^/]*)$/.exec(text) ?? [];
    const problem = `--shard ${quoteGo(text)}`;
    return shardFrom(index ?? '', count ?? '', problem, 'write I/N, as 0/4 for the first of four machines');
  }
  const { JOB_COMPLETION_INDEX: index = '', JOB_COMPLETION_COUNT: count = '' } = environment;
  if (index === '' && count === '') return undefined;
  if (index === '' || count === '') {
    const [given, other] =
      index === ''
        ? ['JOB_COMPLETION_COUNT', 'JOB_COMPLETION_INDEX']
        : ['JOB_COMPLETION_INDEX', 'JOB_COMPLETION_COUNT'];
    const hint =
      other === 'JOB_COMPLETION_COUNT'
        ? 'set JOB_COMPLETION_COUNT to the completions of the Job, or give --shard I/N'
        : 'run in a Job with completionMode Indexed, or give --shard I/N';
    throw new UsageError(`${given} is set, but ${other} is not`, { hint });
  }
  const hint = 'they are numbers, the first of them from 0 and below the second';
  const problem = `JOB_COMPLETION_INDEX ${quoteGo(index)} of JOB_COMPLETION_COUNT ${quoteGo(count)}`;
  return shardFrom(index, count, problem, hint);
}

function shardFrom(index: string, count: string, subject: string, hint: string): Shard {
  const [first, most] = [index, count].map((part) => (/^\d{1,6}$/.test(part) ? Number(part) : Number.NaN));
  const shard = { index: first as number, count: most as number };
  if (shard.count > maxShards) throw new UsageError(`more than ${maxShards} machines`, { subject, hint });
  if (shard.count >= 1 && shard.index < shard.count) return shard;
  throw new UsageError('not one of several machines', { subject, hint });
}

/**
 * The part of some images that a shard copies, in the order given: every image is in exactly one part whatever the
 * order in which they are given, and parts are about equal in bytes, and in images where bytes do not tell. Keys are
 * the images' own.
 */
export function shardOf<T extends { key: string; bytes: number }>(images: readonly T[], shard: Shard): T[] {
  const largestFirst = [...images].sort((a, b) => b.bytes - a.bytes || compareBytes(a.key, b.key));
  const parts = new Parts(shard.count);
  const own = new Set(largestFirst.filter(({ bytes }) => parts.take(bytes) === shard.index));
  return images.filter((image) => own.has(image));
}

/** What the machines have to do, as a heap whose first has the least. */
class Parts {
  readonly #heap: Part[];

  constructor(count: number) {
    this.#heap = Array.from({ length: count }, (_, index) => ({ index, bytes: 0, images: 0 }));
  }

  /** Gives an image to the machine that has the least to do, and returns which that is. */
  take(bytes: number): number {
    const heap = this.#heap;
    const part = heap[0] as Part;
    part.bytes += bytes;
    part.images++;
    for (let at = 0; ;) {
      const least = [2 * at + 1, 2 * at + 2].reduce(
        (best, child) => (isLess(heap[child], heap[best] as Part) ? child : best),
        at,
      );
      if (least === at) return part.index;
      heap[at] = heap[least] as Part;
      heap[least] = part;
      at = least;
    }
  }
}

interface Part {
  index: number;
  bytes: number;
  images: number;
}

function isLess(a: Part | undefined, b: Part): boolean {
  return a !== undefined && (a.bytes - b.bytes || a.images - b.images || a.index - b.index) < 0;
}
