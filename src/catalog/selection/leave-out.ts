import { OpmateError } from '../../core/errors.js';
import { emptyFilter } from './catalog-filter.js';
import { applyFilter } from './filter-catalog.js';
import type { CatalogSelection } from './selection.js';

/** Result of omitting bundles. */
interface LeftOut {
  selection: CatalogSelection;
  /** One sentence each, such as an entry rewired around an omitted bundle. */
  changes: string[];
}

/**
 * Drops bundles from a selection like `applyFilter`: repairs upgrade graphs and removes empty channels and
 * packages. A selection without any of the bundles is returned unchanged; others are no longer whole. `bundles` are
 * `package/bundle`. Throws OpmateError INVALID if nothing remains, and as `applyFilter`.
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
    throw new OpmateError('INVALID', `${catalog}: no content remains without the omitted bundles`);
  }
  const left = applyFilter(facts, { ...emptyFilter(), dropBundles }, { catalog });
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
