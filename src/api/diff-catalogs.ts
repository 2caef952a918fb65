import { type CatalogDiff, diffSnapshots, isSameCatalog } from '../catalog/diff/diff.js';
import { type BreakingChange, findBreakingChanges } from '../catalog/diff/breaking.js';
import { collectFacts } from '../catalog/facts.js';
import { allowChanges } from '../catalog/gate/breaking.js';
import { defaultGateProfile } from '../catalog/gate/gate-profile.js';
import { parseGateProfile } from '../catalog/gate/profile-file.js';
import { takeSnapshot } from '../catalog/diff/snapshot.js';
import type { Catalog } from '../catalog/catalog.js';
import { OpmateError } from '../core/errors.js';
import { describeMissing } from '../core/suggest.js';
import { throwAbout } from '../source/reference-error.js';
import type { CatalogFacts } from '../model/facts.js';
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
      requirePackages(names ?? [], before.facts, after.facts);
      const diff = await diffSnapshots(before, after, session);
      return { diff, isSame: isSameCatalog(diff) };
    }),
  );
}

/** Options of `findBreaking`. */
export interface FindBreakingOptions {
  /** Compare only these packages; default all. */
  packages?: readonly string[] | undefined;
  /** Compare with an empty catalog if `from` is an image that its registry does not have. */
  allowMissing?: boolean | undefined;
  /** Profile of gates with `allowed` changes, and its name in messages. */
  profile?: { text: string; file: string } | undefined;
}

/**
 * Returns the changes that break clusters which use the older catalog: removed packages and channels, installed bundles
 * without an upgrade, lost edges, heads that move back, other default channels, and other images of the same bundle.
 * Those that the profile allows are notices. Throws as `diffCatalogs`, and with all problems of the profile.
 */
export async function findBreaking(
  from: string,
  to: string,
  session: Session,
  options: FindBreakingOptions = {},
): Promise<BreakingChange[]> {
  const { packages: names, profile: document } = options;
  const profile =
    document === undefined ? defaultGateProfile : parseGateProfile(document.text, document.file);
  const { signal, logger } = session;
  const read = (reference: string, { allowMissing }: { allowMissing?: boolean | undefined }) =>
    withReleasedCatalog(reference, session, { allowMissing }, ({ catalog }) =>
      collectFacts(catalog, { signal, logger }).catch(throwAbout(reference)),
    );
  const [before, after] = [await read(from, options), await read(to, {})];
  requirePackages(names ?? [], before, after);
  const changes = findBreakingChanges(before, after, names === undefined ? undefined : new Set(names));
  return allowChanges(changes, profile, session.now());
}

/** A package that is in neither catalog is a typing error, not an equal package. */
function requirePackages(names: readonly string[], ...catalogs: CatalogFacts[]): void {
  const missing = names.filter((name) =>
    catalogs.every(({ packages }) => packages.every((packageFacts) => packageFacts.name !== name)),
  );
  if (missing.length === 0) return;
  throw new OpmateError('NOT_FOUND', describeMissing('package', missing, 'either catalog'), {
    hint: 'run api.listCatalog packages to see the names',
  });
}
