import { type Flag, type FlagValues, choice, flag, grouped, list, repeated, text } from '../command/flags.js';
import type { FilterRequest } from '../../catalog/selection/filter-request.js';

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

/** Returns the criteria of the flags. */
export function getFilterRequest(flags: Partial<FlagValues<typeof filterFlags>>): FilterRequest {
  const { package: packages, channel: channels, version: versions, ...others } = flags;
  const { minVersion: minVersions, maxVersion: maxVersions, defaultChannel: defaultChannels } = others;
  const { dropPackage: dropPackages, dropChannel: dropChannels, dropBundle: dropBundles } = others;
  const scoped = { packages, channels, versions, minVersions, maxVersions, defaultChannels };
  return { ...others, ...scoped, dropPackages, dropChannels, dropBundles };
}
