import { meetsSelector } from '../../kube/label-selector.js';
import { compareKnownVersions, readBundleVersions } from '../../graph/bundle-version.js';
import { SkipRanges } from '../../graph/skip-ranges.js';
import { type Diagnostic, createWarning, formatDiagnostic } from '../../core/diagnostic.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { findReference, parseReference } from '../../core/reference.js';
import {
  type Version,
  compareVersions,
  formatVersion,
  parseTolerantVersion,
  parseVersion,
  tryParse,
} from '../../core/semver.js';
import { quoteShort } from '../../document/field.js';
import type { CatalogFacts, ChannelFacts } from '../../model/facts.js';
import {
  type ClusterCatalog,
  type ClusterObjects,
  type Extension,
  type Subscription,
} from './cluster-objects.js';

/** Catalog content that keeps a cluster installable and upgradable. */
export interface ClusterCapture {
  /** By image. */
  catalogs: CapturedCatalog[];
  /** Objects that were not mapped, or need review. */
  warnings: Diagnostic[];
  subscriptions: number;
  extensions: number;
}

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

/** An object that needs a package. */
interface Request {
  title: string;
  reason: string;
  package: string;
  /** Empty for the default channel, or any channel. */
  channels: string[];
  isAnyChannel: boolean;
  bundle: string;
  version: Version | undefined;
}

/** Sources of mirrored catalogs by their images in the cluster; undefined for an unknown one. */
export type FindSource = (image: string) => string | undefined;

/**
 * Maps installed operators of a cluster to catalogs, packages, channels and minimum versions of an image set.
 * `knownFacts` has known catalogs by their images in the cluster. The source of a mirrored catalog is, in this order, that
 * of `findSource`, its annotation, and that of the mirror sets of the cluster. Throws DiagnosticsError with all unreadable documents,
 * and OpmateError NOT_FOUND if nothing is installed, or nothing can be mapped.
 */
export function captureCluster(
  objects: ClusterObjects,
  knownFacts: ReadonlyMap<string, CatalogFacts>,
  findSource: FindSource = () => undefined,
): ClusterCapture {
  const warnings: Diagnostic[] = [];
  const requested = new Map<string, { reasons: Set<string>; requests: Request[] }>();
  const skipRanges = new SkipRanges();
  const { subscriptions, extensions, csvs, faults } = objects;
  // What a broken document has would be missing in the image set.
  const errors = faults.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) throw new DiagnosticsError(errors, { code: 'INVALID' });
  warnings.push(...faults);
  if (subscriptions.length + extensions.length === 0) {
    const unread = faults.find(({ code }) => code === 'syntax');
    throw new OpmateError('NOT_FOUND', 'no Subscription or ClusterExtension found', {
      hint:
        unread === undefined
          ? 'use the output of kubectl get subscriptions,clusterextensions,csv,catalogsources,clustercatalogs -A -o yaml'
          : `check ${formatDiagnostic(unread)}`,
    });
  }
  for (const subscription of subscriptions) addSubscription(subscription);
  for (const extension of extensions) addExtension(extension);
  warnOfOtherCsvs();
  const catalogs = sortedByBytes(requested.keys()).flatMap((image) => capture(image) ?? []);
  if (catalogs.length === 0) {
    const [first] = warnings;
    throw new OpmateError('NOT_FOUND', 'nothing installed could be mapped to a catalog', {
      hint: first && `check ${formatDiagnostic(first)}`,
    });
  }
  nameTargets(catalogs);
  return {
    ...{ catalogs, warnings },
    ...{ subscriptions: subscriptions.length, extensions: extensions.length },
  };

  function warn(subject: string, problem: string, hint?: string, code = 'needs-review'): void {
    warnings.push(createWarning(code, problem, { subject, ...(hint !== undefined && { hint }) }));
  }

  function warnUnmapped(subject: string, problem: string, hint?: string): void {
    warn(subject, `not mapped: ${problem}`, hint, 'not-mapped');
  }

  function addSubscription(subscription: Subscription): void {
    const { title, source, channel } = subscription;
    const catalog = objects.catalogSources.get(source);
    if (catalog === undefined) return warnUnmapped(title, `CatalogSource ${source} is not among the objects`);
    const { bundle, state } = getBundle(subscription);
    const version = findVersion(title, bundle, csvVersion(subscription.namespace, bundle));
    const where = channel === '' ? 'the default channel' : `channel ${channel}`;
    addRequest(catalog, {
      ...{ title, bundle, version, package: subscription.package },
      reason: `${title}: ${state}, ${where}`,
      channels: channel === '' ? [] : [channel],
      isAnyChannel: false,
    });
  }

  function addExtension(extension: Extension): void {
    const { title, channels, bundle, range } = extension;
    const catalog = findCatalog(extension);
    if (catalog === undefined) return;
    const version = bundle === '' ? undefined : findVersion(title, bundle, extension.version);
    const state = bundle === '' ? 'not installed' : `installed ${bundle}`;
    const where = channels.length === 0 ? 'any channel' : `channels ${channels.join(', ')}`;
    addRequest(catalog, {
      ...{ title, channels, bundle, version, package: extension.package },
      isAnyChannel: channels.length === 0,
      reason: `${title}: ${state}, ${where}${range === '' ? '' : `, version ${range}`}`,
    });
  }

  /** Returns the catalog of an extension, which its status does not contain. */
  function findCatalog({
    title,
    selector,
    package: packageName,
    bundle,
  }: Extension): ClusterCatalog | undefined {
    const candidates = [...objects.clusterCatalogs.values()].filter(
      ({ labels, isEnabled, image }) => isEnabled && image !== undefined && meetsSelector(labels, selector),
    );
    if (candidates.length === 0) {
      warnUnmapped(title, 'no ClusterCatalog among the objects that it may be from');
      return undefined;
    }
    const known = candidates.flatMap((catalog) => {
      const facts = findFacts(catalog);
      return facts === undefined ? [] : [{ catalog, facts }];
    });
    const holding = known.filter(({ facts }) => facts.packages.some(({ name }) => name === packageName));
    const exact = holding.filter(({ facts }) =>
      facts.bundles.some((bundleFacts) => bundleFacts.package === packageName && bundleFacts.name === bundle),
    );
    const fits = exact.length > 0 ? exact : holding;
    const unknown = candidates.filter((catalog) => findFacts(catalog) === undefined);
    const left = fits.length > 0 ? fits.map(({ catalog }) => catalog) : unknown;
    const highest = Math.max(...left.map(({ priority }) => priority));
    const chosen = left.filter(({ priority }) => priority === highest);
    const [only] = chosen;
    if (only !== undefined && (left.length === 1 || (fits.length > 0 && chosen.length === 1))) return only;
    const names = (left.length === 0 ? candidates : left).map((catalog) => catalog.title).join(', ');
    if (left.length === 0) warnUnmapped(title, `package ${quoteShort(packageName)} is in none of ${names}`);
    else {
      const hint = 'specify the catalogs with --catalog IMAGE or --catalog IMAGE=DIRECTORY';
      warnUnmapped(title, `may be from any of ${names}`, hint);
    }
    return undefined;
  }

  function findFacts({ image = '' }: ClusterCatalog): CatalogFacts | undefined {
    return knownFacts.get(image) ?? knownFacts.get(getSource(image));
  }

  function addRequest(catalog: ClusterCatalog, request: Request): void {
    const { title } = request;
    const texts = [request.package, ...request.channels];
    const isPlain = (text: string): boolean => text !== '' && text.length <= 253 && !/[\p{C}\s]/u.test(text);
    const bad = texts.find((text) => !isPlain(text));
    if (bad !== undefined) return warnUnmapped(title, `${quoteShort(bad)} is not a name`);
    if (catalog.image === undefined) {
      const hint = 'set the image of this catalog in the configuration';
      return warnUnmapped(title, `${catalog.title} is not made of an image`, hint);
    }
    const image = getSource(catalog.image);
    if (!isImage(image))
      return warnUnmapped(title, `${catalog.title}: invalid image ${quoteShort(catalog.image)}`);
    const known = getOrAdd(requested, image, () => ({
      reasons: new Set<string>(),
      requests: [] as Request[],
    }));
    known.reasons.add(
      image === catalog.image ? catalog.title : `${catalog.title}, a mirror at ${catalog.image}`,
    );
    if (image === catalog.image && known.requests.length === 0) warnOfMirror(catalog, image);
    known.requests.push(request);
  }

  /** Warns about an image in a mirror whose source is unknown: mirroring from there needs the mirror, and copies a part. */
  function warnOfMirror({ title, isMirror }: ClusterCatalog, image: string): void {
    const getHost = (name: string): string => name.split('/', 1)[0] ?? '';
    const isListed = (key: 'mirror' | 'source'): boolean =>
      objects.mirrors.some((entry) => getHost(entry[key]) === getHost(image));
    if (findSource(image) !== undefined || !(isMirror || (isListed('mirror') && !isListed('source')))) return;
    const hint = 'specify the lock of the mirror run, or the source of this catalog';
    warn(title, `${image} is a mirror, and its source is unknown`, hint, 'unknown-source');
  }

  /** Returns the source of a mirrored image; the image itself if it is unknown. */
  function getSource(image: string): string {
    const own = [...objects.catalogSources.values(), ...objects.clusterCatalogs.values()];
    const annotated = own.find((catalog) => catalog.image === image && isImage(catalog.source))?.source;
    return findSource(image) ?? annotated ?? getMirrorSetSource(image);
  }

  /** Returns the source of a mirrored image by the mirror sets of the cluster; the longest match takes precedence. */
  function getMirrorSetSource(image: string): string {
    const isBelow = (mirror: string): boolean =>
      image.startsWith(mirror) && ['', '/', ':', '@'].includes(image.charAt(mirror.length));
    const match = objects.mirrors
      .filter(({ mirror }) => isBelow(mirror))
      .sort((a, b) => b.mirror.length - a.mirror.length || compareBytes(a.source, b.source))[0];
    return match === undefined ? image : `${match.source}${image.slice(match.mirror.length)}`;
  }

  function csvVersion(namespace: string, name: string): string {
    const all = csvs.filter((csv) => csv.name === name);
    return (all.find((csv) => csv.namespace === namespace) ?? all[0])?.version ?? '';
  }

  function findVersion(title: string, bundle: string, text: string): Version | undefined {
    if (bundle === '') return undefined;
    const version = tryParse(parseVersion, text) ?? tryParse(parseTolerantVersion, text);
    if (version !== undefined) return version;
    const inName = /\.v?(\d+\.\d+\.\d+(?:[-+.].*)?)$/.exec(bundle)?.[1] ?? '';
    const guessed = tryParse(parseVersion, inName);
    if (guessed === undefined)
      warn(
        title,
        `version of ${quoteShort(bundle)} not found: no minVersion`,
        'add its ClusterServiceVersion',
      );
    else if (text === '')
      warn(
        title,
        `ClusterServiceVersion ${quoteShort(bundle)} not found: version ${inName} taken from its name`,
      );
    return guessed;
  }

  /** Warns about CSVs without a Subscription, except OLM's package server. */
  function warnOfOtherCsvs(): void {
    const known = new Set(
      subscriptions.flatMap(({ namespace, installedCsv, currentCsv }) => [
        `${namespace}/${installedCsv}`,
        `${namespace}/${currentCsv}`,
      ]),
    );
    for (const { namespace, name, isCopy } of csvs) {
      if (isCopy || name === 'packageserver' || known.has(`${namespace}/${name}`)) continue;
      warnUnmapped(`ClusterServiceVersion ${namespace}/${name}`, 'no Subscription installs it');
    }
  }

  function capture(image: string): CapturedCatalog | undefined {
    const { reasons, requests } = requested.get(image) as { reasons: Set<string>; requests: Request[] };
    const facts = knownFacts.get(image) ?? [...knownFacts].find(([own]) => getSource(own) === image)?.[1];
    const names = sortedByBytes(new Set(requests.map((request) => request.package)));
    const packages = names.flatMap((name) => {
      const own = requests.filter((request) => request.package === name);
      return capturePackage(name, own, image, facts) ?? [];
    });
    if (packages.length === 0) return undefined;
    return { image, reasons: sortedByBytes(reasons), targetCatalog: undefined, packages };
  }

  function capturePackage(
    name: string,
    requests: readonly Request[],
    image: string,
    facts: CatalogFacts | undefined,
  ): CapturedPackage | undefined {
    const packageFacts = facts?.packages.find((item) => item.name === name);
    if (facts !== undefined && packageFacts === undefined) {
      for (const { title } of requests) warnUnmapped(title, `${image} has no package ${quoteShort(name)}`);
      return undefined;
    }
    const reasons = requests.map(({ reason }) => reason).sort(compareBytes);
    const checked =
      facts === undefined || packageFacts === undefined
        ? requests
        : requests.map((request) =>
            check(request, { image, facts, defaultChannel: packageFacts.defaultChannel }),
          );
    const lowest = (versions: readonly (Version | undefined)[]): string | undefined => {
      const known = versions.filter((version) => version !== undefined).sort(compareVersions);
      return known[0] && formatVersion(known[0]);
    };
    // A default channel that is unknown without the catalog keeps all channels.
    if (checked.some(({ channels }) => channels.length === 0)) {
      const minVersion = lowest(checked.map(({ version }) => version));
      return { name, reasons, defaultChannel: undefined, channels: undefined, minVersion };
    }
    const channelNames = sortedByBytes(new Set(checked.flatMap(({ channels }) => channels)));
    const channels = channelNames.map((channel) => {
      const own = checked.filter((request) => request.channels.includes(channel));
      return { name: channel, minVersion: lowest(own.map(({ version }) => version)) };
    });
    const isListed = packageFacts !== undefined && channelNames.includes(packageFacts.defaultChannel);
    const newest = [...checked].sort((a, b) => compareKnownVersions(b.version, a.version))[0];
    return {
      ...{ name, reasons, channels, minVersion: undefined },
      defaultChannel: isListed ? undefined : newest?.channels[0],
    };
  }

  /** Returns a request limited to the content of a catalog. */
  function check(
    request: Request,
    { image, facts, defaultChannel }: { image: string; facts: CatalogFacts; defaultChannel: string },
  ): Request {
    const { title, bundle } = request;
    const channels = facts.channels.filter((channel) => channel.package === request.package);
    const gone = request.channels.filter((name) => !channels.some((channel) => channel.name === name));
    for (const name of gone)
      warn(
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
    if (!chosen.some((channel) => hasUpgrade(channel, request))) {
      const where = wanted.map((name) => `channel ${name}`).join(', ');
      warn(title, `${image} has no upgrade from ${bundle} in ${where}`);
    }
    // A minimum above all versions of a channel is an error in an image set.
    const version = chosen.every(isReached) ? request.version : undefined;
    if (version === undefined && request.version !== undefined)
      warn(title, `${image} has only bundles before ${formatVersion(request.version)}: no minVersion`);
    return { ...request, channels: wanted, version };
  }

  /** Reports whether a channel has the installed bundle, or an upgrade from it. */
  function hasUpgrade({ entries }: ChannelFacts, { bundle, version }: Request): boolean {
    return entries.some(
      ({ name, replaces, skips, skipRange }) =>
        name === bundle ||
        replaces === bundle ||
        skips.includes(bundle) ||
        (version !== undefined && skipRanges.get(skipRange)?.contains(version) === true),
    );
  }
}

/** Returns the bundle to keep, with its state. */
function getBundle({ installedCsv, startingCsv, currentCsv }: Subscription): {
  bundle: string;
  state: string;
} {
  if (installedCsv !== '') {
    const next =
      currentCsv === '' || currentCsv === installedCsv ? '' : ` (upgrade to ${currentCsv} pending)`;
    return { bundle: installedCsv, state: `installed ${installedCsv}${next}` };
  }
  if (startingCsv !== '') return { bundle: startingCsv, state: `not installed, starts with ${startingCsv}` };
  return { bundle: '', state: 'not installed' };
}

function isImage(text: string): boolean {
  return findReference(text)?.transport === 'docker' && !text.startsWith('docker://');
}

/** Sets different paths for catalogs with one path and tag in several registries. */
function nameTargets(catalogs: CapturedCatalog[]): void {
  const taken = new Map<string, number>();
  for (const catalog of catalogs) {
    const reference = parseReference(catalog.image);
    if (reference.transport !== 'docker') continue;
    const { repository, tag, digest } = reference;
    const name = `${repository}:${tag ?? (digest === undefined ? 'latest' : digest)}`;
    const count = (taken.get(name) ?? 0) + 1;
    taken.set(name, count);
    if (count > 1) catalog.targetCatalog = `${repository}-${count}`;
  }
}
