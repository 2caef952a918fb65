import { compareKnownVersions, readBundleVersions } from '../../graph/bundle-version.js';
import { SkipRanges } from '../../graph/skip-ranges.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { type Version, compareVersions, formatVersion } from '../../core/semver.js';
import { quoteShort } from '../../document/field.js';
import type { CatalogFacts, ChannelFacts } from '../../model/facts.js';
import type { CaptureWarnings } from './capture-warnings.js';
import type { CatalogRequests, PackageRequest } from './installed-requests.js';

/** A catalog of a capture. */
export interface CapturedCatalog {
  /** Source image. */
  image: string;
  /** Objects of the cluster that use it. */
  reasons: string[];
  /** Path at the target, if another catalog has the default one. */
  targetCatalog: string | undefined;
  /** By name. */
  packages: CapturedPackage[];
}

/** A package of a capture. */
export interface CapturedPackage {
  name: string;
  reasons: string[];
  /** Set if the channels may not include the catalog's default channel. */
  defaultChannel: string | undefined;
  /** Undefined for all channels. */
  channels: { name: string; minVersion: string | undefined }[] | undefined;
  /** Applies to all channels. */
  minVersion: string | undefined;
}

/** Limits the requests of one catalog image to its content, where that is known. */
export class CatalogCapture {
  readonly #image: string;
  readonly #facts: CatalogFacts | undefined;
  readonly #warnings: CaptureWarnings;
  readonly #skipRanges = new SkipRanges();

  constructor(image: string, facts: CatalogFacts | undefined, warnings: CaptureWarnings) {
    this.#image = image;
    this.#facts = facts;
    this.#warnings = warnings;
  }

  /** Returns the packages to mirror; undefined if the catalog has none of them. */
  capture({ reasons, requests }: CatalogRequests): CapturedCatalog | undefined {
    const names = sortedByBytes(new Set(requests.map((request) => request.package)));
    const packages = names.flatMap((name) => {
      const own = requests.filter((request) => request.package === name);
      return this.#capturePackage(name, own) ?? [];
    });
    if (packages.length === 0) return undefined;
    return { image: this.#image, reasons: sortedByBytes(reasons), targetCatalog: undefined, packages };
  }

  #capturePackage(name: string, requests: readonly PackageRequest[]): CapturedPackage | undefined {
    const [image, facts] = [this.#image, this.#facts];
    const packageFacts = facts?.packages.find((item) => item.name === name);
    if (facts !== undefined && packageFacts === undefined) {
      for (const { title } of requests)
        this.#warnings.addUnmapped(title, `${image} has no package ${quoteShort(name)}`);
      return undefined;
    }
    const reasons = requests.map(({ reason }) => reason).sort(compareBytes);
    const checked =
      facts === undefined || packageFacts === undefined
        ? requests
        : requests.map((request) => this.#check(request, facts, packageFacts.defaultChannel));
    // A default channel that is unknown without the catalog keeps all channels.
    if (checked.some(({ channels }) => channels.length === 0)) {
      const minVersion = findLowest(checked.map(({ version }) => version));
      return { name, reasons, defaultChannel: undefined, channels: undefined, minVersion };
    }
    const channelNames = sortedByBytes(new Set(checked.flatMap(({ channels }) => channels)));
    const channels = channelNames.map((channel) => {
      const own = checked.filter((request) => request.channels.includes(channel));
      return { name: channel, minVersion: findLowest(own.map(({ version }) => version)) };
    });
    const isListed = packageFacts !== undefined && channelNames.includes(packageFacts.defaultChannel);
    const newest = [...checked].sort((a, b) => compareKnownVersions(b.version, a.version))[0];
    return {
      name,
      reasons,
      channels,
      minVersion: undefined,
      defaultChannel: isListed ? undefined : newest?.channels[0],
    };
  }

  /** Returns a request limited to the content of a catalog. */
  #check(request: PackageRequest, facts: CatalogFacts, defaultChannel: string): PackageRequest {
    const image = this.#image;
    const { title, bundle } = request;
    const channels = facts.channels.filter((channel) => channel.package === request.package);
    const gone = request.channels.filter((name) => !channels.some((channel) => channel.name === name));
    for (const name of gone)
      this.#warnings.add(
        title,
        `${image} has no channel ${quoteShort(name)}`,
        `use another channel, such as ${defaultChannel}`,
      );
    const bundles = facts.bundles.filter((item) => item.package === request.package);
    const versions = readBundleVersions(bundles);
    const isReached = ({ entries }: ChannelFacts): boolean =>
      request.version === undefined ||
      entries.some(({ name }) => {
        const version = versions.get(name);
        return version !== undefined && compareVersions(version, request.version as Version) >= 0;
      });
    const kept = request.isAnyChannel
      ? channels.filter(isReached).map(({ name }) => name)
      : request.channels.filter((name) => !gone.includes(name));
    const wanted = kept.length > 0 ? kept : [defaultChannel];
    if (bundle === '') return { ...request, channels: wanted };
    const chosen = channels.filter(({ name }) => wanted.includes(name));
    if (!chosen.some((channel) => this.#hasUpgrade(channel, request))) {
      const where = wanted.map((name) => `channel ${name}`).join(', ');
      this.#warnings.add(title, `${image} has no upgrade from ${bundle} in ${where}`);
    }
    // A minimum above all versions of a channel is an error in an image set.
    const version = chosen.every(isReached) ? request.version : undefined;
    if (version === undefined && request.version !== undefined)
      this.#warnings.add(
        title,
        `${image} has only bundles before ${formatVersion(request.version)}: no minVersion`,
      );
    return { ...request, channels: wanted, version };
  }

  /** Reports whether a channel has the installed bundle, or an upgrade from it. */
  #hasUpgrade({ entries }: ChannelFacts, { bundle, version }: PackageRequest): boolean {
    return entries.some(
      ({ name, replaces, skips, skipRange }) =>
        name === bundle ||
        replaces === bundle ||
        skips.includes(bundle) ||
        (version !== undefined && this.#skipRanges.get(skipRange)?.contains(version) === true),
    );
  }
}

/** Returns the lowest known version. */
function findLowest(versions: readonly (Version | undefined)[]): string | undefined {
  const known = versions.filter((version) => version !== undefined).sort(compareVersions);
  return known[0] && formatVersion(known[0]);
}
