import type { Version } from '../core/semver.js';
import type { ChannelEntry } from '../model/declarative-config.js';
import { SkipRanges } from './skip-ranges.js';

/** Evaluates the skip ranges of entries against bundle `versions`. */
export class UpgradeRules {
  readonly #versions: ReadonlyMap<string, Version>;
  readonly ranges = new SkipRanges();

  constructor(versions: ReadonlyMap<string, Version>) {
    this.#versions = versions;
  }

  /** Reports whether the skip range of an entry contains a bundle. */
  isInSkipRange(name: string, { skipRange }: ChannelEntry): boolean {
    const version = this.#versions.get(name);
    return version !== undefined && this.ranges.get(skipRange)?.contains(version) === true;
  }
}
