import { parseGoJson } from '../document/go-json.js';
import { getValue } from '../document/json-fields.js';
import { type BundleBlob, schemas } from '../model/declarative-config.js';
import { type BlobOrigin, type CatalogFacts, emptyFacts } from '../model/facts.js';
import { findDefaultHeads } from '../graph/list.js';
import { findCsvText } from '../model/migrations.js';
import { addToFacts, decodeMeta } from './blob.js';
import type { Catalog, MetasOptions } from './catalog.js';
import { readLocated } from './locate.js';
import type { Meta } from './meta.js';

interface FactsOptions extends MetasOptions {
  /** Is shown each bundle, for what facts do not keep. */
  onBundle?: ((bundle: BundleBlob) => void) | undefined;
  /** Is told where each blob of another schema stands, and shown the blob. */
  onOther?: ((origin: BlobOrigin, meta: Meta) => void) | undefined;
}

/**
 * Reads a catalog once and keeps of each blob what validation, listing and drawing need. Throws OpmateError
 * with file and line for a blob that cannot be loaded, unless `onFault` takes it.
 */
export async function collectFacts(catalog: Catalog, options: FactsOptions = {}): Promise<CatalogFacts> {
  const facts = emptyFacts();
  await readLocated(catalog, { withoutManifests: true, ...options }, (meta) =>
    addFacts(facts, meta, options),
  );
  return facts;
}

/** Adds what a blob says to facts. Throws OpmateError INVALID in the words of `opm`, without a place. */
export function addFacts(facts: CatalogFacts, meta: Meta, options: FactsOptions = {}): void {
  const decoded = decodeMeta(meta);
  addToFacts(facts, decoded, meta.origin);
  if (decoded.kind === 'bundle') options.onBundle?.(decoded.blob);
  if (decoded.kind === 'other') {
    facts.otherCount = (facts.otherCount ?? 0) + 1;
    options.onOther?.(meta.origin, meta);
  }
}

/**
 * Display names by package: each from the ClusterServiceVersion of its default channel's head, where that has
 * its objects in the catalog. Throws OpmateError when a blob cannot be read again.
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

/** Returns the display name in the ClusterServiceVersion among the objects of a bundle. */
export function findCsvDisplayName(blob: BundleBlob): string | undefined {
  const csvText = findCsvText(blob);
  const name = csvText === undefined ? undefined : getValue(parseGoJson(csvText), 'spec', 'displayName');
  return typeof name === 'string' ? name : undefined;
}
