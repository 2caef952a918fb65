import type { Catalog } from '../catalog/catalog.js';
import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import type { CatalogFacts } from '../model/facts.js';
import type { ImageSetConfiguration, OperatorConfig } from './image-set-config.js';
import type { CatalogSelection } from './select-operators.js';

/** What to do about packages that the selected bundles need and that are not selected. */
export type DependencyMode = 'none' | 'report' | 'add';

/** A catalog of the configuration with what is taken of it. */
export interface DependencyCatalog {
  operator: OperatorConfig;
  catalog: Catalog;
  facts: CatalogFacts;
  selection: CatalogSelection;
}

export interface Closure {
  /** Those of the catalogs whose selection has grown, with the new one. */
  selections: Map<DependencyCatalog, CatalogSelection>;
  /** One sentence an addition: what was added, from where, and which bundle needs it. */
  added: string[];
  /** One sentence a need that nothing selected, or nothing at all, provides. */
  unmet: string[];
}

/**
 * Finds what the selected bundles need (`olm.package.required`, `olm.gvk.required`, `olm.constraint`) and no selected
 * bundle provides, over all given catalogs, and with `add` selects it, until nothing is missing. Throws what selection
 * throws.
 */
export function closeDependencies(
  config: ImageSetConfiguration,
  catalogs: readonly DependencyCatalog[],
  mode: DependencyMode,
  options: CancelOptions,
): Promise<Closure> {
  throw new OpmateError('INTERNAL', `${config.file}: not built yet`, { cause: [catalogs, mode, options] });
}
