import { collectFacts } from '../catalog/facts.js';
import type { CancelOptions } from '../core/concurrency.js';
import { describeBundle } from '../model/describe.js';
import { type CatalogFacts, emptyFacts } from '../model/facts.js';
import { renderBundleSource } from './render.js';
import type { Source } from './source-types.js';

/** Collects the facts of a catalog or of a single bundle. */
export async function sourceFacts(
  source: Source,
  reference: string,
  options: CancelOptions = {},
): Promise<CatalogFacts> {
  if (source.kind === 'catalog') return collectFacts(source.catalog, options);
  const blob = renderBundleSource(source, reference, { migrationLevel: 'none' });
  return { ...emptyFacts(), bundles: [describeBundle(blob)] };
}
