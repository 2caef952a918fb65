import { getMessage } from '../core/errors.js';
import { type VersionRange, parseRange } from '../core/semver.js';

/** A range that entries skip; `fault` says why one does not parse. Neither for an empty text. */
interface SkipRange {
  range?: VersionRange;
  fault?: string;
}

/** The ranges that entries skip, each text parsed once. */
export class SkipRanges {
  readonly #parsed = new Map<string, SkipRange>([['', {}]]);

  read(text: string): SkipRange {
    let parsed = this.#parsed.get(text);
    if (parsed === undefined) this.#parsed.set(text, (parsed = parse(text)));
    return parsed;
  }

  /** Undefined for no range, and for one that does not parse: nothing is in it, and validation reports it. */
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
