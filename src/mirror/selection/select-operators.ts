import {
  type CatalogFilter,
  type ChannelBundles,
  type Criteria,
  type RequestPlace,
  emptyFilter,
} from '../../catalog/selection/catalog-filter.js';
import { applyFilter } from '../../catalog/selection/filter-catalog.js';
import { type CatalogSelection, wholeCatalog } from '../../catalog/selection/selection.js';
import type { VersionBounds } from '../../catalog/selection/version-bounds.js';
import type { TextPosition } from '../../core/diagnostic.js';
import type { CatalogFacts } from '../../model/facts.js';
import { type OperatorConfig, hasBounds } from '../image-set/image-set-config.js';

/**
 * Selects packages, channels and bundles of a catalog as an image set configures them:
 *
 * - by default all packages with the heads of their channels; with `full` alone the unchanged catalog
 * - listed packages and channels only; with `full`, all of their bundles
 * - versions: per channel the part of the upgrade chain with all versions in range, and the bundles that it skips; one
 *   version if minimum and maximum are equal
 *
 * `also` are further bundles, whose channels are kept along the upgrade chain down to them. Throws errors of
 * `applyFilter`. (Source: oc-mirror v2.)
 */
export function selectOperators(
  facts: CatalogFacts,
  operator: OperatorConfig,
  file: string,
  also: ChannelBundles = new Map(),
): CatalogSelection {
  if (operator.full && operator.packages === undefined) return wholeCatalog(facts);
  return applyFilter(facts, toFilter(operator, file, also), { catalog: operator.catalog });
}

function toFilter(
  { full, packages, place }: OperatorConfig,
  file: string,
  also: ChannelBundles,
): CatalogFilter {
  const filter: CatalogFilter = { ...emptyFilter(), keep: 'chain', lostDefault: 'refuse', also };
  const toWhere = ({ line, column }: TextPosition): RequestPlace => ({ file, line, column });
  const addCriteria = (
    { name, channel }: { name?: string; channel?: string },
    bounds: VersionBounds & { place: TextPosition },
  ): void => {
    if (full) return;
    const criteria = toCriteria(bounds);
    filter.criteria.push({ package: name, channel, where: toWhere(bounds.place), criteria });
  };
  if (packages === undefined) {
    addCriteria({}, { minVersion: undefined, maxVersion: undefined, place });
    return filter;
  }
  filter.packages = packages.map((config) => ({ name: config.name, where: toWhere(config.place) }));
  for (const config of packages) {
    const { name, channels, defaultChannel } = config;
    if (defaultChannel !== undefined)
      filter.defaultChannels.push({ package: name, name: defaultChannel, where: toWhere(config.place) });
    for (const channel of channels ?? [])
      filter.channels.push({ package: name, name: channel.name, where: toWhere(channel.place) });
    // Versions are set either for the package or for its channels.
    if (channels === undefined || hasBounds(config)) addCriteria({ name }, config);
    else for (const channel of channels) addCriteria({ name, channel: channel.name }, channel);
  }
  return filter;
}

function toCriteria(bounds: VersionBounds): Criteria {
  const { minVersion, maxVersion } = bounds;
  if (!hasBounds(bounds)) return { latest: 1 };
  if (minVersion !== undefined && minVersion === maxVersion) return { version: minVersion };
  return { ...(minVersion !== undefined && { minVersion }), ...(maxVersion !== undefined && { maxVersion }) };
}
