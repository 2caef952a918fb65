import { OpmateError } from '../../core/errors.js';
import { emptyFilter } from './catalog-filter.js';
import { filterCatalog } from './filter-catalog.js';
import type { CatalogSelection } from './selection.js';

/** What leaving bundles out has changed. */
interface LeftOut {
  selection: CatalogSelection;
  /** One sentence each, e.g. which entry leads past a bundle that is gone. */
  changes: string[];
}

/**
 * Drops bundles from a selection, as `filterCatalog` does: upgrade graphs are repaired, and channels and packages that
 * have nothing left go. A selection with none of the bundles comes back as it is; any other is not whole any more.
 * `bundles` are `package/bundle`. Throws OpmateError INVALID where nothing is left, and what `filterCatalog` throws.
 */
export function leaveOut(
  selection: CatalogSelection,
  bundles: ReadonlySet<string>,
  catalog: string,
): LeftOut {
  const { facts } = selection;
  const dropBundles = facts.bundles
    .filter(({ package: of, name }) => bundles.has(`${of}/${name}`))
    .map(({ package: of, name }) => ({ package: of, name, where: {} }));
  if (dropBundles.length === 0) return { selection, changes: [] };
  if (dropBundles.length === facts.bundles.length) {
    throw new OpmateError(
      'INVALID',
      `${catalog}: without the bundles that are left out nothing is left of it`,
    );
  }
  const left = filterCatalog(facts, { ...emptyFilter(), dropBundles }, { catalog });
  const toKey = (...parts: string[]): string => parts.join('\0');
  const entries = new Set(
    left.facts.channels.flatMap((channel) =>
      channel.entries.map(({ name }) => toKey(channel.package, channel.name, name)),
    ),
  );
  const kept = selection.kept.filter((keptBundle) =>
    entries.has(toKey(keptBundle.package, keptBundle.channel, keptBundle.bundle)),
  );
  return {
    selection: { ...left, kept, warnings: selection.warnings },
    changes: [...left.changes, ...left.warnings],
  };
}
