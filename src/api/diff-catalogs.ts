import { type CatalogDiff, diffSnapshots, isSameCatalog } from '../catalog/diff/diff.js';
import { type BreakingChange, findBreakingChanges } from '../catalog/diff/breaking.js';
import { collectFacts } from '../catalog/facts.js';
import { type CatalogSnapshot, takeSnapshot } from '../catalog/diff/snapshot.js';
import type { Catalog } from '../catalog/catalog.js';
import { OpmateError } from '../core/errors.js';
import { describeMissing } from '../core/suggest.js';
import { throwAbout } from '../source/reference-error.js';
import type { Session } from '../source/session.js';
import { withCatalog, withReleasedCatalog } from './open-catalog.js';

/** Differences of two catalogs. */
export interface DiffedCatalogs {
  diff: CatalogDiff;
  /** True if there are none. */
  isSame: boolean;
}

/**
 * Compares two catalogs: packages, channels, upgrade edges, bundles, images and deprecations. Layout, order and format
 * are ignored. Throws OpmateError, NOT_FOUND for a package that neither has.
 */
export async function diffCatalogs(
  from: string,
  to: string,
  session: Session,
  options: {
    /** Compare only these packages; default all. */
    packages?: readonly string[] | undefined;
    /** Compare with an empty catalog if `from` is an image that its registry does not have. */
    allowMissing?: boolean | undefined;
  } = {},
): Promise<DiffedCatalogs> {
  const { packages: names } = options;
  const { signal, logger } = session;
  const packages = names === undefined ? undefined : new Set(names);
  const read = (reference: string, catalog: Catalog) =>
    takeSnapshot(catalog, { signal, logger, packages }).catch(throwAbout(reference));
  return withReleasedCatalog(from, session, options, (first) =>
    withCatalog(to, session, async (second) => {
      const [before, after] = [await read(from, first.catalog), await read(to, second.catalog)];
      requirePackages(names ?? [], before, after);
      const diff = await diffSnapshots(before, after, session);
      return { diff, isSame: isSameCatalog(diff) };
    }),
  );
}

/**
 * Returns the changes that break clusters which use the older catalog: installed bundles without an upgrade, lost edges,
 * heads that move back, other default channels, and other images of the same bundle. Throws as `diffCatalogs`.
 */
export async function findBreaking(
  from: string,
  to: string,
  session: Session,
  options: { packages?: readonly string[] | undefined; allowMissing?: boolean | undefined } = {},
): Promise<BreakingChange[]> {
  const packages = options.packages === undefined ? undefined : new Set(options.packages);
  const { signal, logger } = session;
  const read = (reference: string, { allowMissing }: { allowMissing?: boolean | undefined }) =>
    withReleasedCatalog(reference, session, { allowMissing }, ({ catalog }) =>
      collectFacts(catalog, { signal, logger }).catch(throwAbout(reference)),
    );
  return findBreakingChanges(await read(from, options), await read(to, {}), packages);
}

/** A package that is in neither catalog is a typing error, not an equal package. */
function requirePackages(names: readonly string[], before: CatalogSnapshot, after: CatalogSnapshot): void {
  const missing = names.filter((name) =>
    [before, after].every(({ facts }) => facts.packages.every((packageFacts) => packageFacts.name !== name)),
  );
  if (missing.length === 0) return;
  throw new OpmateError('NOT_FOUND', describeMissing('package', missing, 'either catalog'), {
    hint: 'run api.listCatalog packages to see the names',
  });
}
