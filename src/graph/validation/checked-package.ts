import { NameIndex } from '../../core/suggest.js';
import { type Version, compareVersions } from '../../core/semver.js';
import type { BundleFacts, ChannelFacts, PackageFacts } from '../../model/facts.js';
import { readBundleVersion } from '../bundle-version.js';

/** Work that can pause at each yield. */
export type Steps<T> = Generator<void, T, void>;

/** A package that is validated: its first blobs of each name, and what references between them revealed. */
export class CheckedPackage {
  readonly facts: PackageFacts;
  readonly channels = new Map<string, ChannelFacts>();
  readonly bundles = new Map<string, BundleFacts>();
  /** Names in the entries of all channels, including duplicate channels. */
  readonly entryNames = new Set<string>();
  lastChannel: ChannelFacts | undefined;
  hasUnnamedChannel = false;
  /** Bundles whose blob names an unknown package instead of this one. */
  readonly misplaced = new Set<string>();
  /** Entries without a bundle that are probably misspelled. */
  readonly misspelled = new Set<string>();
  /** Bundles without an entry. */
  readonly unlisted: BundleFacts[] = [];
  isDeprecated = false;
  /** References of deprecations with an empty message, by `deprecationKey`. */
  readonly emptyDeprecations = new Set<string>();
  /** Created on demand, when all blobs are known. */
  readonly #indexes: { bundles?: NameIndex; channels?: NameIndex } = {};
  /** Parsed on demand, to compare bundles. */
  readonly #versions = new Map<string, Version | undefined>();

  constructor(facts: PackageFacts) {
    this.facts = facts;
  }

  /** Returns the most similar name of a bundle or channel. */
  nearest(kind: 'bundles' | 'channels', name: string): string | undefined {
    return (this.#indexes[kind] ??= new NameIndex(this[kind].keys())).nearest(name);
  }

  /** Returns the version of a bundle; undefined if it is missing or invalid. */
  bundleVersion(name: string): Version | undefined {
    if (!this.#versions.has(name)) this.#versions.set(name, readBundleVersion(this.bundles.get(name)));
    return this.#versions.get(name);
  }

  /** Parses the versions of bundles before comparing all of them. */
  *readVersions(names: Iterable<string>): Steps<void> {
    for (const name of names) {
      this.bundleVersion(name);
      yield;
    }
  }

  /** Compares the versions of two bundles; undefined if one is unknown. */
  compareBundles(a: string, b: string): number | undefined {
    const [x, y] = [this.bundleVersion(a), this.bundleVersion(b)];
    return x === undefined || y === undefined ? undefined : compareVersions(x, y);
  }
}
