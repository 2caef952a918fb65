import { type Flag, type FlagValues, choice, flag, grouped, list, repeated, text } from '../command/flags.js';
import type { CatalogFilter, Criteria } from '../../catalog/selection/catalog-filter.js';
import {
  checkVersion,
  maxCount,
  parseInstalled,
  parseQualifiedName,
  parseSince,
  parseNamedRange,
} from '../../catalog/selection/filter-criteria.js';
import { invalidValue, readValue } from '../../core/errors.js';
import { integer } from '../command/values.js';

const scoped = (value: string, summary: string): Flag<string[] | undefined> =>
  repeated(value, summary, { group: 'Selection' });
const names = (value: string, summary: string): Flag<string[] | undefined> =>
  list(value, summary, { group: 'Selection' });

/** Flags for the criteria of a filter. */
export const filterFlags = {
  ...grouped('Selection', {
    package: list('name', 'keep only these packages', { short: 'p', aliases: ['packages'] }),
    channel: list('[package/]channel', 'keep only these channels in packages that have any of them', {
      aliases: ['channels'],
    }),
    version: repeated('[scope=]range', 'keep versions in a range; see "opmate help versions"', {
      aliases: ['versions'],
    }),
  }),
  minVersion: scoped('[scope=]version', 'keep this version and higher ones'),
  maxVersion: scoped('[scope=]version', 'keep this version and lower ones'),
  reachableFrom: scoped('[scope=]installed', 'keep bundles reachable from an installed bundle'),
  createdSince: text('date|months', 'keep bundles created on or after DATE, or within the last N months', {
    group: 'Selection',
  }),
  latest: scoped('[scope=]count', 'keep only the N newest matching bundles per channel'),
  ...grouped('Selection', {
    headsOnly: flag('the same as --latest 1', { excludes: ['latest'] }),
    undated: choice('choice', ['keep', 'drop'], 'handling of bundles without a creation date', {
      defaultText: 'keep',
    }),
  }),
  defaultChannel: scoped('package=channel', 'new default channel of a package'),
  dropPackage: names('name', 'drop these packages'),
  dropChannel: names('[package/]channel', 'drop these channels'),
  dropBundle: names('[package/]bundle', 'drop these bundles and rewire edges around them'),
  ...grouped('Selection', {
    dropDeprecated: flag('drop deprecated packages, channels and bundles'),
    exact: flag('keep only matching bundles and rewire edges around removed ones'),
  }),
};

/** Adds flags to a filter; months are counted back from `today`. Throws UsageError for an invalid value. */
export function addFilterFlags(
  filter: CatalogFilter,
  flags: Partial<FlagValues<typeof filterFlags>>,
  today: Date,
): void {
  const addScoped = (
    flag: string,
    values: readonly string[] | undefined,
    read: (text: string) => Criteria,
  ) => {
    for (const value of values ?? []) {
      const { package: of, channel, text } = parseScope(value);
      const criteria = readValue(`--${flag}`, text, read);
      filter.criteria.push({ package: of, channel, where: { subject: `--${flag}` }, criteria });
    }
  };
  const toNamed = (flag: string, names: readonly string[] = []) =>
    names.map((name) => ({ name, where: { subject: `--${flag}` } }));
  const toQualified = (flag: string, names?: readonly string[]) =>
    toNamed(flag, names).map(({ name, where }) => ({ ...parseQualifiedName(name), where }));
  for (const request of toNamed('package', flags.package)) (filter.packages ??= []).push(request);
  filter.channels.push(...toQualified('channel', flags.channel));
  addScoped('version', flags.version, (text) => ({ versions: parseNamedRange(text) }));
  addScoped('min-version', flags.minVersion, (text) => ({ minVersion: checkVersion(text) }));
  addScoped('max-version', flags.maxVersion, (text) => ({ maxVersion: checkVersion(text) }));
  addScoped('reachable-from', flags.reachableFrom, (text) => ({ reachableFrom: parseInstalled(text) }));
  addScoped('latest', flags.latest, (text) => ({ latest: integer(1, maxCount)(text) }));
  const everywhere = { package: undefined, channel: undefined };
  if (flags.headsOnly === true) {
    filter.criteria.push({ ...everywhere, where: { subject: '--heads-only' }, criteria: { latest: 1 } });
  }
  if (flags.createdSince !== undefined) {
    const text = flags.createdSince;
    const where = { subject: '--created-since' };
    const createdSince = readValue(where.subject, text, () => parseSince(text, today));
    filter.criteria.push({ ...everywhere, where, criteria: { createdSince } });
  }
  for (const value of flags.defaultChannel ?? []) {
    const { package: of, channel, text } = parseScope(value);
    if (of === undefined || channel !== undefined || text === '') {
      throw invalidValue('--default-channel', value, 'expected package=channel');
    }
    filter.defaultChannels.push({ package: of, name: text, where: { subject: '--default-channel' } });
  }
  filter.dropPackages.push(...toNamed('drop-package', flags.dropPackage));
  filter.dropChannels.push(...toQualified('drop-channel', flags.dropChannel));
  filter.dropBundles.push(...toQualified('drop-bundle', flags.dropBundle));
  filter.undated = flags.undated ?? filter.undated;
  filter.dropDeprecated ||= flags.dropDeprecated === true;
  if (flags.exact === true) filter.keep = 'nothing';
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
