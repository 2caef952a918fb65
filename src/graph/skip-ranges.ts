import { getMessage } from '../core/errors.js';
import type { Interval } from '../core/interval-trees.js';
import { countLeading } from '../core/order.js';
import { type ComparedRange, type Version, compareVersions, parseRange } from '../core/semver.js';

/** A skip range, or why it is invalid in `fault`; neither for empty text. */
interface SkipRange {
  range?: ComparedRange;
  fault?: string;
}

/** Skip ranges, each text parsed once. */
export class SkipRanges {
  readonly #parsed = new Map<string, SkipRange>([['', {}]]);

  read(text: string): SkipRange {
    let parsed = this.#parsed.get(text);
    if (parsed === undefined) this.#parsed.set(text, (parsed = parse(text)));
    return parsed;
  }

  /** Returns a range; undefined for empty and invalid text: validation reports the latter. */
  get(text: string): ComparedRange | undefined {
    return this.read(text).range;
  }
}

function parse(text: string): SkipRange {
  try {
    return { range: parseRange(text) };
  } catch (error) {
    return { fault: getMessage(error) };
  }
}

/** Returns the positions of the versions in a range. `versions` are ascending. */
export function findIntervals({ bounds, contains }: ComparedRange, versions: readonly Version[]): Interval[] {
  const cuts = new Set([0, versions.length]);
  for (const bound of bounds) {
    cuts.add(countLeading(versions, (version) => compareVersions(version, bound) < 0));
    cuts.add(countLeading(versions, (version) => compareVersions(version, bound) <= 0));
  }
  const sorted = [...cuts].sort((a, b) => a - b);
  const intervals: Interval[] = [];
  for (const [index, to] of sorted.entries()) {
    const from = sorted[index - 1];
    // Between two cuts, all versions compare alike with every bound.
    if (from === undefined || !contains(versions[from] as Version)) continue;
    const last = intervals.at(-1);
    if (last?.to === from) last.to = to;
    else intervals.push({ from, to });
  }
  return intervals;
}
