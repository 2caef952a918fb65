import { withOpen } from '../../core/concurrency.js';
import { parseReference } from '../../core/reference.js';
import { type ChannelRow, type PackageRow, listChannels, listPackages } from '../../graph/list.js';
import {
  getDefaultCatalogs,
  listVersions,
  readOperatorNames,
  requirePackageName,
} from '../../mirror/selection/operator-list.js';
import type { CatalogFacts } from '../../model/facts.js';
import { openReference } from '../../oci/image/open.js';
import type { Session } from '../../source/session.js';
import { loadCatalog } from '../load-catalog.js';

/** Options of `listCatalogOperators`. */
export interface ListCatalogOperatorsOptions {
  /** List only this package, and its channels; default all packages. */
  package?: string | undefined;
  /** List the versions in this channel of the package. */
  channel?: string | undefined;
  /** Called with names, edges and versions of the catalog. */
  onFacts?: ((facts: CatalogFacts) => void | Promise<void>) | undefined;
}

/** Packages of a catalog, as oc-mirror lists them. */
export interface ListedOperators {
  packages: PackageRow[];
  /** Channels of the package; undefined without one. */
  channels: ChannelRow[] | undefined;
  /** Versions in the channel, oldest first; undefined without one. */
  versions: string[] | undefined;
}

/**
 * Lists the packages of a catalog, the channels of a package, or the versions in a channel. Throws OpmateError NOT_FOUND, with
 * the nearest name, for a package or channel that the catalog lacks.
 */
export async function listCatalogOperators(
  reference: string,
  session: Session,
  { package: packageName, channel, onFacts }: ListCatalogOperatorsOptions = {},
): Promise<ListedOperators> {
  return withOpen(loadCatalog(reference.replace(/^oci:\/\//, 'oci:'), session), async (catalog) => {
    const facts = await catalog.facts();
    await onFacts?.(facts);
    if (packageName === undefined) {
      const names = await readOperatorNames(catalog, facts, session);
      return { packages: listPackages(facts, names), channels: undefined, versions: undefined };
    }
    if (channel !== undefined) {
      const versions = listVersions(facts, packageName, channel, reference);
      return { packages: [], channels: undefined, versions };
    }
    requirePackageName(facts, packageName, reference);
    const names = await readOperatorNames(catalog, facts, { packageName, signal: session.signal });
    const packages = listPackages(facts, names).filter(({ name }) => name === packageName);
    return { packages, channels: listChannels(facts, packageName), versions: undefined };
  });
}

/** Lists the default catalogs of an OpenShift version, such as `4.18`, and whether each exists. Throws UsageError. */
export async function listDefaultCatalogs(
  version: string,
  session: Session,
): Promise<{ image: string; isPresent: boolean }[]> {
  const catalogs: { image: string; isPresent: boolean }[] = [];
  for (const image of getDefaultCatalogs(version)) {
    await withOpen(openReference(parseReference(image), session), async ({ repository, reference }) => {
      const head = await repository.headManifest(reference, session);
      catalogs.push({ image, isPresent: head !== undefined });
    });
  }
  return catalogs;
}
