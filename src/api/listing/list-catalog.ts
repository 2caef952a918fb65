import { withOpen } from '../../core/concurrency.js';
import { readDisplayNames } from '../../catalog/facts.js';
import type { Criteria } from '../../catalog/selection/catalog-filter.js';
import { parseNamedRange } from '../../catalog/selection/filter-criteria.js';
import { OpmateError, readValue } from '../../core/errors.js';
import { requireKnown } from '../../core/suggest.js';
import { readBundleVersion } from '../../graph/bundle-version.js';
import {
  type BundleRow,
  type ChannelRow,
  type PackageRow,
  listBundles,
  listChannels,
  listPackages,
} from '../../graph/list.js';
import { validateInTurns } from '../../graph/validate.js';
import type { CatalogFacts } from '../../model/facts.js';
import type { Session } from '../../source/session.js';
import { loadCatalog } from '../load-catalog.js';

/** Rows of a catalog, by kind. */
export interface CatalogRows {
  packages: PackageRow;
  channels: ChannelRow;
  bundles: BundleRow;
}

/** Options of `listCatalog`. */
export interface ListCatalogOptions {
  /** Default all. */
  packages?: readonly string[] | undefined;
  /** Channels of the rows of channels and bundles; default all. */
  channels?: readonly string[] | undefined;
  /** Range of the versions of bundles; default all. */
  versionRange?: string | undefined;
  /** Called with names, edges and versions of the catalog before rows are selected. */
  onFacts?: ((facts: CatalogFacts) => void | Promise<void>) | undefined;
}

/**
 * Lists the packages, channels or bundles of a valid catalog, by name. Throws OpmateError INVALID for a catalog that is
 * not valid, and NOT_FOUND with the nearest name for packages and channels that it lacks.
 */
export async function listCatalog<K extends keyof CatalogRows>(
  reference: string,
  kind: K,
  session: Session,
  { packages = [], channels, versionRange, onFacts }: ListCatalogOptions = {},
): Promise<CatalogRows[K][]> {
  const versions =
    versionRange === undefined ? undefined : readValue('options.versionRange', versionRange, parseNamedRange);
  const refusal = {
    problem: 'cannot list non-index',
    hint: 'specify a catalog, or inspect the bundle with api.render',
  };
  return withOpen(loadCatalog(reference, session, refusal), async (catalog) => {
    const facts = await catalog.facts();
    const { passed, message = 'invalid index' } = await validateInTurns(facts, session);
    if (!passed) {
      throw new OpmateError('INVALID', message, { hint: 'run api.validate to list every problem' });
    }
    await onFacts?.(facts);
    requireKnown('package', packages, facts.packages);
    requireKnown('channel', channels ?? [], facts.channels);
    const isInRange = createVersionTest(facts, versions);
    const readers: { [P in keyof CatalogRows]: () => CatalogRows[P][] | Promise<CatalogRows[P][]> } = {
      packages: async () => listPackages(facts, await readDisplayNames(catalog, facts)),
      channels: () => listChannels(facts),
      bundles: () => listBundles(facts),
    };
    return (await readers[kind]()).filter((row) => {
      const name = 'package' in row ? row.package : row.name;
      const isOfChannel = !('channel' in row) || (channels?.includes(row.channel) ?? true);
      return isOfChannel && (packages.length === 0 || packages.includes(name)) && isInRange(row);
    });
  });
}

/** Returns a test of a row's bundle for a range of versions; without a range all rows pass. */
function createVersionTest(
  { bundles }: CatalogFacts,
  versions: Criteria['versions'],
): (row: CatalogRows[keyof CatalogRows]) => boolean {
  if (versions === undefined) return () => true;
  const matching = new Set<string>();
  for (const bundle of bundles) {
    const version = readBundleVersion(bundle);
    if (version !== undefined && versions.range.contains(version))
      matching.add(`${bundle.package}\0${bundle.name}`);
  }
  return (row) => 'bundle' in row && matching.has(`${row.package}\0${row.bundle}`);
}
