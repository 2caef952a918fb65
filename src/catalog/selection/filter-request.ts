import { invalidValue, readValue } from '../../core/errors.js';
import type { CatalogFilter, Criteria } from './catalog-filter.js';
import {
  checkVersion,
  parseCount,
  parseInstalled,
  parseNamedRange,
  parseQualifiedName,
  parseSince,
} from './filter-criteria.js';

/**
 * Criteria of a filter as texts. A scope is `PACKAGE=` or `PACKAGE/CHANNEL=` before the text; without one, a criterion
 * applies to the whole catalog.
 */
export interface FilterRequest {
  /** Keep only these packages; default all. */
  packages?: readonly string[] | undefined;
  /** Keep only these channels, `[PACKAGE/]CHANNEL`, in packages that have any of them; default all. */
  channels?: readonly string[] | undefined;
  /** Keep versions in a range, `[SCOPE=]RANGE`. */
  versions?: readonly string[] | undefined;
  /** Keep a version and higher ones, `[SCOPE=]VERSION`. */
  minVersions?: readonly string[] | undefined;
  /** Keep a version and lower ones, `[SCOPE=]VERSION`. */
  maxVersions?: readonly string[] | undefined;
  /** Keep bundles reachable from an installed bundle, `[SCOPE=]NAME-OR-VERSION`. */
  reachableFrom?: readonly string[] | undefined;
  /** Keep bundles created on or after a date, `YYYY-MM-DD`, or within a number of months. */
  createdSince?: string | undefined;
  /** Keep only the newest matching bundles per channel, `[SCOPE=]COUNT`. */
  latest?: readonly string[] | undefined;
  /** Keep only the newest matching bundle per channel; default false. */
  headsOnly?: boolean | undefined;
  /** Treatment of bundles without a creation date by `createdSince`; default `keep`. */
  undated?: CatalogFilter['undated'] | undefined;
  /** New default channels, `PACKAGE=CHANNEL`. */
  defaultChannels?: readonly string[] | undefined;
  /** Drop these packages. */
  dropPackages?: readonly string[] | undefined;
  /** Drop these channels, `[PACKAGE/]CHANNEL`. */
  dropChannels?: readonly string[] | undefined;
  /** Drop these bundles, `[PACKAGE/]BUNDLE`, and rewire edges around them. */
  dropBundles?: readonly string[] | undefined;
  /** Drop deprecated packages, channels and bundles; default false. */
  dropDeprecated?: boolean | undefined;
  /** Keep only matching bundles and rewire edges around removed ones; default false. */
  exact?: boolean | undefined;
}

/** Adds criteria to a filter; months are counted back from `today`. Throws UsageError for an invalid value. */
export function addRequest(filter: CatalogFilter, request: FilterRequest, today: Date): void {
  const packages = toNamed('options.packages', request.packages);
  if (packages.length > 0) filter.packages = [...(filter.packages ?? []), ...packages];
  filter.channels.push(...toQualified('options.channels', request.channels));
  filter.criteria.push(...readCriteria(request, today));
  filter.defaultChannels.push(...(request.defaultChannels ?? []).map(readDefaultChannel));
  filter.dropPackages.push(...toNamed('options.dropPackages', request.dropPackages));
  filter.dropChannels.push(...toQualified('options.dropChannels', request.dropChannels));
  filter.dropBundles.push(...toQualified('options.dropBundles', request.dropBundles));
  filter.undated = request.undated ?? filter.undated;
  filter.dropDeprecated ||= request.dropDeprecated === true;
  if (request.exact === true) filter.keep = 'nothing';
}

function readCriteria(request: FilterRequest, today: Date): CatalogFilter['criteria'] {
  const { versions, minVersions, maxVersions, reachableFrom, latest, createdSince } = request;
  const date = createdSince === undefined ? [] : [createdSince];
  const everywhere = { package: undefined, channel: undefined };
  return [
    ...readScoped('options.versions', versions, (text) => ({ versions: parseNamedRange(text) })),
    ...readScoped('options.minVersions', minVersions, (text) => ({ minVersion: checkVersion(text) })),
    ...readScoped('options.maxVersions', maxVersions, (text) => ({ maxVersion: checkVersion(text) })),
    ...readScoped('options.reachableFrom', reachableFrom, (text) => ({
      reachableFrom: parseInstalled(text),
    })),
    ...readScoped('options.latest', latest, (text) => ({ latest: parseCount(text) })),
    ...(request.headsOnly === true
      ? [{ ...everywhere, where: { subject: 'options.headsOnly' }, criteria: { latest: 1 } }]
      : []),
    ...date.map((text) => {
      const subject = 'options.createdSince';
      const criteria = readValue(subject, text, () => ({ createdSince: parseSince(text, today) }));
      return { ...everywhere, where: { subject }, criteria };
    }),
  ];
}

function readScoped(
  subject: string,
  values: readonly string[] = [],
  read: (text: string) => Criteria,
): CatalogFilter['criteria'] {
  return values.map((value) => {
    const { package: of, channel, text } = parseScope(value);
    return { package: of, channel, where: { subject }, criteria: readValue(subject, text, read) };
  });
}

function readDefaultChannel(value: string): CatalogFilter['defaultChannels'][number] {
  const subject = 'options.defaultChannels';
  const { package: of, channel, text } = parseScope(value);
  if (of === undefined || channel !== undefined || text === '')
    throw invalidValue(subject, value, 'expected package=channel');
  return { package: of, name: text, where: { subject } };
}

function toNamed(subject: string, names: readonly string[] = []) {
  return names.map((name) => ({ name, where: { subject } }));
}

function toQualified(subject: string, names: readonly string[] = []) {
  return names.map((name) => ({ ...parseQualifiedName(name), where: { subject } }));
}

/** `package=…`, `package/channel=…`, or no scope. No operator of a range and no version is a package's name. */
function parseScope(value: string): {
  package: string | undefined;
  channel: string | undefined;
  text: string;
} {
  const match = /^([A-Za-z0-9][^\s<>=!|/]*)(?:\/([^\s<>=!|]+))?=(.*)$/s.exec(value);
  if (match === null) return { package: undefined, channel: undefined, text: value };
  return { package: match[1], channel: match[2], text: (match[3] as string).trim() };
}
