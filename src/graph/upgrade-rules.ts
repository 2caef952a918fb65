import type { Version } from '../core/semver.js';
import type { ChannelEntry } from '../model/declarative-config.js';
import { SkipRanges } from './skip-ranges.js';

/** Tells which bundles entries skip by their ranges, where bundles have these `versions`. */
export class UpgradeRules {
  readonly #versions: ReadonlyMap<string, Version>;
  readonly ranges = new SkipRanges();

  constructor(versions: ReadonlyMap<string, Version>) {
    this.#versions = versions;
  }

  /** Whether an entry skips a bundle by its range. */
  isInSkipRange(name: string, { skipRange }: ChannelEntry): boolean {
    const version = this.#versions.get(name);
    return version !== undefined && this.ranges.get(skipRange)?.contains(version) === true;
  }
}
