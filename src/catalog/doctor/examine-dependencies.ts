import { type CancelOptions } from '../../core/concurrency.js';
import { throwIfCancelled } from '../../core/errors.js';
import type { BundleFacts } from '../../model/facts.js';
import { readBundleVersion } from '../../graph/bundle-version.js';
import { OfferIndex } from '../../graph/offer-index.js';
import type { BundleTraits } from './examine-bundle.js';
import type { FindingList } from './finding-list.js';

/** Finds dependencies that no bundle of the catalog provides. */
export function examineDependencies(
  records: ReadonlyMap<BundleFacts, BundleTraits>,
  findings: FindingList,
  { signal }: CancelOptions,
): void {
  if (!findings.wants('dependency-unmet')) return;
  const offers = new OfferIndex({ meetsUnclear: true });
  for (const [bundle, { apis }] of records) {
    offers.add({ package: bundle.package, version: readBundleVersion(bundle), apis });
  }
  for (const [bundle, { needs }] of records) {
    throwIfCancelled(signal);
    for (const { need, path } of needs) {
      for (const part of offers.unmetParts(need)) {
        const isKnown = part.kind === 'one' && part.package !== undefined && offers.hasPackage(part.package);
        const subject = { package: bundle.package, bundle: bundle.name, origin: bundle.origin, path };
        const hint = isKnown
          ? 'add a matching version to the catalog, or require an available one'
          : 'ignore this if another catalog on the cluster provides it';
        const message = `depends on ${part.text}, which no bundle of the catalog provides`;
        findings.add('dependency-unmet', subject, message, hint, isKnown ? 'warning' : 'notice');
      }
    }
  }
}
