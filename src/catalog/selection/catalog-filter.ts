import type { Diagnostic } from '../../core/diagnostic.js';
import type { VersionRange } from '../../core/semver.js';

/**
 * Selection of catalog content; everything by default. Packages and channels narrow it; within a channel all criteria
 * apply together, with `latest` counted last. Dropped content is removed first.
 */
export interface CatalogFilter {
  /** Select only these packages; default: all. */
  packages: NamedRequest[] | undefined;
  /** Select only these channels of packages that have any of them. */
  channels: ChannelRequest[];
  /** Criteria; for each kind, the narrowest scope takes precedence, then the last. */
  criteria: ScopedCriteria[];
  /** New default channels. */
  defaultChannels: (ChannelRequest & { package: string })[];
  dropPackages: NamedRequest[];
  dropChannels: ChannelRequest[];
  /** Dropped bundles; without a package, in all packages. */
  dropBundles: (NamedRequest & { package: string | undefined })[];
  /** Drop packages, channels and bundles in `olm.deprecations`. */
  dropDeprecated: boolean;
  /** Treatment of bundles without a creation date by `createdSince`. */
  undated: 'keep' | 'drop';
  /**
   * Additional content. `needed`: bundles on the way to the head (`ChannelWays.keep`); `chain`: bundles between on
   * the upgrade chain (`keepChain`); `nothing`: edges are rewired (`repairChannel`).
   */
  keep: 'needed' | 'chain' | 'nothing';
  /** Treatment of an unselected default channel: replaced by the one with the highest head, or refused. */
  lostDefault: 'replace' | 'refuse';
  /** Bundles selected in any case. The first channel becomes the default of a package with only these. */
  also: ChannelBundles;
}

/** Bundle names by package, then channel. */
export type ChannelBundles = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;

/** Place of a request for messages: a flag as the subject, or a file with line and column. */
export type RequestPlace = Pick<Diagnostic, 'subject' | 'file' | 'line' | 'column'>;

export interface NamedRequest {
  name: string;
  where: RequestPlace;
}

/** A requested channel, of all packages that have it if no package is set. */
interface ChannelRequest extends NamedRequest {
  package: string | undefined;
}

/** Criteria for the catalog, a package, or one of its channels. */
interface ScopedCriteria {
  package: string | undefined;
  channel: string | undefined;
  where: RequestPlace;
  criteria: Criteria;
}

/** Criteria for bundles of a channel. */
export interface Criteria {
  /** A range as OLM reads it, with prereleases by plain precedence. */
  versions?: { text: string; range: VersionRange };
  /** One bundle with this version: the one with the same text, else the nearest to the head. */
  version?: string;
  /** Minimum version, inclusive; prereleases as in `toRange`. */
  minVersion?: string;
  maxVersion?: string;
  /** Maximum number of newest bundles, see `ChannelWays.newestFirst`. */
  latest?: number;
  /** Name or version of an installed bundle: selects bundles reachable from it. */
  reachableFrom?: string;
  /** A date such as `2024-01-31`, inclusive. */
  createdSince?: string;
}

/** Returns a filter that selects everything. */
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

/** Describes criteria, to follow `no bundle`. */
export function describeCriteria(criteria: Criteria): string {
  const { version, versions, minVersion, maxVersion, latest, reachableFrom, createdSince } = criteria;
  const parts: string[] = [];
  if (version !== undefined) parts.push(`with version ${version}`);
  if (versions !== undefined) parts.push(`in range ${versions.text}`);
  if (minVersion !== undefined) parts.push(`from version ${minVersion}`);
  if (maxVersion !== undefined) parts.push(`up to version ${maxVersion}`);
  if (reachableFrom !== undefined) parts.push(`reachable from ${reachableFrom}`);
  if (createdSince !== undefined) parts.push(`created on or after ${createdSince}`);
  if (latest !== undefined && parts.length === 0) parts.push(`among the latest ${latest}`);
  return parts.join(', ');
}
