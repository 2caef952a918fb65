import { OpmateError } from '../core/errors.js';
import type { CatalogSelection } from './select-operators.js';

/** What leaving bundles out has changed. */
export interface LeftOut {
  selection: CatalogSelection;
  /** One sentence each, e.g. which entry leads past a bundle that is gone. */
  changes: string[];
}

/**
 * A selection without some bundles, its upgrade graph repaired: an entry that replaced one of them replaces what that
 * one did, and skips it; a channel or package that has nothing left goes. Throws OpmateError INVALID where nothing
 * valid is left. `bundles` are `package/bundle`.
 */
export function leaveOut(
  selection: CatalogSelection,
  bundles: ReadonlySet<string>,
  catalog: string,
): LeftOut {
  throw new OpmateError('INTERNAL', `${catalog}: not built yet`, { cause: [selection, bundles] });
}
