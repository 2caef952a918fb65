import { getMessage } from '../core/errors.js';
import { type VersionRange, parseRange } from '../core/semver.js';

/** A skip range, or why it is invalid in `fault`; neither for empty text. */
interface SkipRange {
  range?: VersionRange;
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
  get(text: string): VersionRange | undefined {
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
