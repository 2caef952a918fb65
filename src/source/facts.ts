import { collectFacts } from '../catalog/facts.js';
import type { CancelOptions } from '../core/concurrency.js';
import { describeBundle } from '../model/describe.js';
import type { CatalogFacts } from '../model/facts.js';
import { renderBundleSource } from './render.js';
import type { Source } from './source-types.js';

/** The facts of any source: of a catalog all of them, of a bundle its own. */
export async function sourceFacts(
  source: Source,
  reference: string,
  options: CancelOptions = {},
): Promise<CatalogFacts> {
  if (source.kind === 'catalog') return collectFacts(source.catalog, options);
  const blob = renderBundleSource(source, reference, { migrationLevel: 'none' });
  return { packages: [], channels: [], bundles: [describeBundle(blob)], deprecations: [] };
}

/** The facts of several sources, in their order. */
export function joinFacts(all: readonly CatalogFacts[]): CatalogFacts {
  return {
    packages: all.flatMap((facts) => facts.packages),
    channels: all.flatMap((facts) => facts.channels),
    bundles: all.flatMap((facts) => facts.bundles),
    deprecations: all.flatMap((facts) => facts.deprecations),
    otherCount: all.reduce((sum, { otherCount = 0 }) => sum + otherCount, 0),
  };
}
