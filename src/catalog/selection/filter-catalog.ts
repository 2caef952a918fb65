import { listNames } from '../../core/suggest.js';
import { OpmateError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import type { CatalogFacts } from '../../model/facts.js';
import { readPackages } from '../../graph/package-model.js';
import type { CatalogFilter } from './catalog-filter.js';
import { type FilterOptions, FilterRun } from './filter-run.js';
import { PackageFilter } from './package-filter.js';
import { RequestedNames } from './requested-names.js';
import { type CatalogSelection, requireValid } from './selection.js';

/**
 * Selects the content of a filter, and what it needs to be a valid catalog without stranded clusters: the head of a
 * channel stays reachable from each selected bundle from which it was before.
 *
 * - Dropped content is removed first, and edges are rewired around it (see `repairChannel`): it was explicitly
 *   excluded.
 * - Selected bundles are not cut out of their channel: bundles on the way from one to another stay (see
 *   `ChannelWays.keep`), each with its reason in `kept`, because an edge around a bundle is an upgrade that the
 *   author never offered. `keep` can change that: to only selected bundles, or to the stretch of the upgrade chain
 *   that image sets define.
 * - Channels and packages without content are removed. A removed default channel is replaced by the remaining one
 *   whose head has the highest version, unless the filter sets or refuses it.
 * - Deprecations of remaining content stay, as do custom blobs of remaining packages.
 *
 * Throws DiagnosticsError with all requested names that are missing or have no matching content, with the nearest
 * names and versions, and invalid channels; OpmateError if no valid catalog can be built.
 */
export function applyFilter(
  facts: CatalogFacts,
  filter: CatalogFilter,
  options: FilterOptions,
): CatalogSelection {
  const { catalog } = options;
  const run = new FilterRun(filter, options);
  const models = readPackages(facts);
  const requested = new RequestedNames(run, models);
  requested.require();
  const names = filter.packages?.map(({ name }) => name) ?? models.keys();
  const dropped = new Set(filter.dropPackages.map(({ name }) => name));
  for (const name of new Set([...names, ...filter.also.keys()])) {
    const model = models.get(name);
    if (model === undefined || dropped.has(name)) continue;
    new PackageFilter(run, model, requested.isMisnamed(name)).run();
  }
  run.throwIfAtFault();
  const { selection } = run;
  if (selection.facts.packages.length === 0) {
    if (models.size === 0) throw new OpmateError('NOT_FOUND', `${catalog}: has no package`);
    throw new OpmateError('NOT_FOUND', `${catalog}: the filter selects nothing`, {
      hint: selection.warnings[0] ?? listNames('use a known package:', models.keys()),
    });
  }
  requireValid(selection.facts, catalog);
  selection.packages.sort((a, b) => compareBytes(a.name, b.name));
  return selection;
}
