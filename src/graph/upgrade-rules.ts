import { type Version, type VersionRange, parseRange, tryParse } from '../core/semver.js';
import type { ChannelEntry } from '../model/declarative-config.js';

/** Tells which entries of a channel a cluster can go on to, where bundles have these `versions`. */
export class UpgradeRules {
  readonly #versions: ReadonlyMap<string, Version>;
  readonly #ranges = new Map<string, VersionRange | undefined>();

  constructor(versions: ReadonlyMap<string, Version>) {
    this.#versions = versions;
  }

  /** Whether a cluster with the bundle `name` can go on to an entry. */
  leads(name: string, entry: ChannelEntry): boolean {
    return name !== entry.name && (isNamedBy(name, entry) || this.isInSkipRange(name, entry));
  }

  /** Whether an entry skips a bundle by its range. */
  isInSkipRange(name: string, entry: ChannelEntry): boolean {
    return this.isInRange(this.#versions.get(name), entry);
  }

  /** Whether an entry skips the range that a version is in. */
  isInRange(version: Version | undefined, { skipRange }: ChannelEntry): boolean {
    return version !== undefined && this.rangeOf(skipRange)?.contains(version) === true;
  }

  /** Undefined for no range, and for one that does not parse: nothing is in it, and validation reports it. */
  rangeOf(text: string): VersionRange | undefined {
    if (this.#ranges.has(text)) return this.#ranges.get(text);
    const range = text === '' ? undefined : tryParse(parseRange, text);
    this.#ranges.set(text, range);
    return range;
  }
}

/** Whether an entry replaces or skips a bundle by its name. */
export function isNamedBy(name: string, { replaces, skips }: ChannelEntry): boolean {
  return replaces === name || skips.includes(name);
}
