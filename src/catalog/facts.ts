import { parseGoJson } from '../document/go-json.js';
import { csvType } from '../kube/csv-types.js';
import { conform } from '../kube/struct.js';
import { type BundleBlob, schemas } from '../model/declarative-config.js';
import { type CatalogFacts, emptyFacts } from '../model/facts.js';
import { findDefaultHeads } from '../graph/list.js';
import { findCsvText } from '../model/migrations.js';
import { type DecodedBlob, addToFacts, decodeMeta } from './blob.js';
import type { Catalog, MetasOptions } from './catalog.js';
import { readLocated } from './locate.js';
import type { Meta } from './meta.js';

export interface FactsOptions extends MetasOptions {
  /** Receives each bundle. */
  onBundle?: ((bundle: BundleBlob) => void) | undefined;
  /** Receives each blob of another schema. */
  onOther?: ((meta: Meta) => void) | undefined;
}

/**
 * Reads a catalog once and keeps what validation, lists and drawings need. Throws OpmateError with file and line for
 * an invalid blob, unless `onFault` handles it.
 */
export async function collectFacts(catalog: Catalog, options: FactsOptions = {}): Promise<CatalogFacts> {
  const facts = emptyFacts();
  await readLocated(catalog, { withoutManifests: true, ...options }, (meta) => {
    addFacts(facts, meta, options);
  });
  return facts;
}

/** Adds a blob to facts and returns it decoded. Throws OpmateError INVALID in the words of `opm`, without a place. */
export function addFacts(facts: CatalogFacts, meta: Meta, options: FactsOptions = {}): DecodedBlob {
  const decoded = decodeMeta(meta);
  addToFacts(facts, decoded, meta.origin);
  if (decoded.kind === 'bundle') options.onBundle?.(decoded.blob);
  if (decoded.kind === 'other') options.onOther?.(meta);
  return decoded;
}

/**
 * Returns display names by package, from the ClusterServiceVersion of each default channel's head, if the catalog has
 * its objects. Throws OpmateError if a blob cannot be read again.
 */
export async function readDisplayNames(catalog: Catalog, facts: CatalogFacts): Promise<Map<string, string>> {
  const heads = findDefaultHeads(facts);
  const names = new Map<string, string>();
  for (const { package: packageName, name, origin } of facts.bundles) {
    if (heads.get(packageName) !== name || origin === undefined) continue;
    const value = await catalog.read(origin);
    const decoded = decodeMeta({ schema: schemas.bundle, package: packageName, name, value, origin });
    if (decoded.kind !== 'bundle') continue;
    const displayName = findCsvDisplayName(decoded.blob);
    if (displayName !== undefined) names.set(packageName, displayName);
  }
  return names;
}

/**
 * Returns the display name in the ClusterServiceVersion among the objects of a bundle; none if a field of it has the
 * wrong type, as in `opm`.
 */
export function findCsvDisplayName(blob: BundleBlob): string | undefined {
  const csvText = findCsvText(blob);
  if (csvText === undefined) return undefined;
  const { value, faults } = conform(parseGoJson(csvText), csvType, { foldNames: true });
  return faults.length > 0 ? undefined : value.spec?.displayName;
}
