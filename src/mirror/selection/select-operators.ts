import {
  type CatalogFilter,
  type ChannelBundles,
  type Criteria,
  type RequestPlace,
  emptyFilter,
} from '../../catalog/selection/catalog-filter.js';
import { filterCatalog } from '../../catalog/selection/filter-catalog.js';
import { type CatalogSelection, wholeCatalog } from '../../catalog/selection/selection.js';
import type { VersionBounds } from '../../catalog/selection/version-bounds.js';
import type { Place } from '../../core/diagnostic.js';
import type { CatalogFacts } from '../../model/facts.js';
import { type OperatorConfig, hasBounds } from '../image-set/image-set-config.js';

/**
 * Chooses packages, channels and bundles of a catalog as an image set means them:
 *
 * - nothing said: every package, of each channel its head; `full` alone: the catalog as it is
 * - packages and channels narrow that; with `full`, they have all their bundles
 * - versions: in each channel the stretch of the upgrade chain that holds every version in range, and those
 *   that its entries skip; one version alone where the least is the most
 *
 * `also` are bundles that are wanted whatever the configuration says: their channels are taken along the upgrade chain
 * as far as they reach. Throws what `filterCatalog` throws. (Source: oc-mirror v2 and its catalog filter.)
 */
export function selectOperators(
  facts: CatalogFacts,
  operator: OperatorConfig,
  file: string,
  also: ChannelBundles = new Map(),
): CatalogSelection {
  if (operator.full && operator.packages === undefined) return wholeCatalog(facts);
  return filterCatalog(facts, toFilter(operator, file, also), { catalog: operator.catalog });
}

function toFilter(
  { full, packages, place }: OperatorConfig,
  file: string,
  also: ChannelBundles,
): CatalogFilter {
  const filter: CatalogFilter = { ...emptyFilter(), keep: 'chain', lostDefault: 'refuse', also };
  const getWhere = ({ line, column }: Place): RequestPlace => ({ file, line, column });
  const add = (
    of: string | undefined,
    channel: string | undefined,
    bounds: VersionBounds,
    location: Place,
  ): void => {
    if (!full)
      filter.criteria.push({ package: of, channel, where: getWhere(location), criteria: toCriteria(bounds) });
  };
  if (packages === undefined) {
    add(undefined, undefined, { minVersion: undefined, maxVersion: undefined }, place);
    return filter;
  }
  filter.packages = packages.map((packageConfig) => ({
    name: packageConfig.name,
    where: getWhere(packageConfig.place),
  }));
  for (const packageConfig of packages) {
    const { name: of, channels, defaultChannel } = packageConfig;
    const where = getWhere(packageConfig.place);
    if (defaultChannel !== undefined)
      filter.defaultChannels.push({ package: of, name: defaultChannel, where });
    for (const channel of channels ?? []) {
      filter.channels.push({ package: of, name: channel.name, where: getWhere(channel.place) });
    }
    // Versions are set for the package, or for its channels.
    if (channels === undefined || hasBounds(packageConfig))
      add(of, undefined, packageConfig, packageConfig.place);
    else for (const channel of channels) add(of, channel.name, channel, channel.place);
  }
  return filter;
}

function toCriteria(bounds: VersionBounds): Criteria {
  const { minVersion, maxVersion } = bounds;
  if (!hasBounds(bounds)) return { latest: 1 };
  if (minVersion !== undefined && minVersion === maxVersion) return { version: minVersion };
  return { ...(minVersion !== undefined && { minVersion }), ...(maxVersion !== undefined && { maxVersion }) };
}
