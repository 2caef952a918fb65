import type { Diagnostic } from '../../core/diagnostic.js';
import type { VersionRange } from '../../core/semver.js';

/**
 * What is wanted of a catalog. Everything where nothing is said; packages and channels narrow that; in each channel
 * all criteria together narrow what is left, and `latest` counts what the others leave. Whatever is to be dropped goes
 * before anything is chosen or counted.
 */
export interface CatalogFilter {
  /** Only these packages; all where it is undefined. */
  packages: NamedRequest[] | undefined;
  /** Of packages that some of these apply to only these channels. */
  channels: ChannelRequest[];
  /** Of several that say the same kind of thing the one with the narrowest scope counts, of equal scope the last. */
  criteria: ScopedCriteria[];
  /** New default channels. */
  defaultChannels: (ChannelRequest & { package: string })[];
  dropPackages: NamedRequest[];
  dropChannels: ChannelRequest[];
  /** A bundle without a package is dropped wherever it is. */
  dropBundles: (NamedRequest & { package: string | undefined })[];
  /** Packages, channels and bundles that `olm.deprecations` names are dropped. */
  dropDeprecated: boolean;
  /** Whether `createdSince` takes bundles that do not tell when they were created. */
  undated: 'keep' | 'drop';
  /**
   * What is kept in addition to what is asked for. `needed`: what the way to the head goes through (`ChannelWays.keep`); `chain`:
   * what stands between along the upgrade chain (`keepChain`); `nothing`: edges lead past the rest (`repairChannel`).
   */
  keep: 'needed' | 'chain' | 'nothing';
  /** A default channel that is left out gives way to the one with the highest head, or is refused. */
  lostDefault: 'replace' | 'refuse';
  /** Bundles that are wanted whatever else is said. A package that has only these gets the first channel as its default. */
  also: ChannelBundles;
}

/** Names of bundles by package, then channel. */
export type ChannelBundles = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;

/** Where something was asked for, as messages begin with it: a flag as the subject, or a file with line and column. */
export type RequestPlace = Pick<Diagnostic, 'subject' | 'file' | 'line' | 'column'>;

export interface NamedRequest {
  name: string;
  where: RequestPlace;
}

/** A channel; of each package that has it where no package is named. */
interface ChannelRequest extends NamedRequest {
  package: string | undefined;
}

/** Criteria for the whole catalog, for a package, or for a channel of it. */
interface ScopedCriteria {
  package: string | undefined;
  channel: string | undefined;
  where: RequestPlace;
  criteria: Criteria;
}

/** What bundles of a channel must be to be wanted. */
export interface Criteria {
  /** A range as OLM reads it, prereleases by plain precedence. */
  versions?: { text: string; range: VersionRange };
  /** One bundle of this version: of several the one that is written the same, else the nearest to the head. */
  version?: string;
  /** Least version, itself included; prereleases as `toRange` says. */
  minVersion?: string;
  maxVersion?: string;
  /** How many, from the newest on, see `ChannelWays.newestFirst`. */
  latest?: number;
  /** The name or version of a bundle that is installed: what a cluster with it can still come to. */
  reachableFrom?: string;
  /** A day such as `2024-01-31`, itself included. */
  createdSince?: string;
}

/** A filter that wants everything. */
export function emptyFilter(): CatalogFilter {
  return {
    packages: undefined,
    channels: [],
    criteria: [],
    defaultChannels: [],
    dropPackages: [],
    dropChannels: [],
    dropBundles: [],
    dropDeprecated: false,
    undated: 'keep',
    keep: 'needed',
    lostDefault: 'replace',
    also: new Map(),
  };
}

/** Criteria in words, to go on after `no bundle`. */
export function describeCriteria(criteria: Criteria): string {
  const { version, versions, minVersion, maxVersion, latest, reachableFrom, createdSince } = criteria;
  const parts: string[] = [];
  if (version !== undefined) parts.push(`with version ${version}`);
  if (versions !== undefined) parts.push(`in range ${versions.text}`);
  if (minVersion !== undefined) parts.push(`from version ${minVersion}`);
  if (maxVersion !== undefined) parts.push(`up to version ${maxVersion}`);
  if (reachableFrom !== undefined) parts.push(`that can be reached from ${reachableFrom}`);
  if (createdSince !== undefined) parts.push(`created since ${createdSince}`);
  if (latest !== undefined && parts.length === 0) parts.push(`among the latest ${latest}`);
  return parts.join(', ');
}
