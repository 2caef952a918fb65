import { pushTo } from '../../core/groups.js';
import { type CancelOptions } from '../../core/concurrency.js';
import { throwIfCancelled } from '../../core/errors.js';
import type { Need, Offer, SingleNeed } from '../../model/dependency-needs.js';
import type { BundleFacts } from '../../model/facts.js';
import { readBundleVersion } from '../../graph/bundle-version.js';
import type { BundleRecord } from './examine-bundle.js';
import type { FindingList } from './finding-list.js';

/** Looks for what bundles depend on and no bundle of the catalog provides. */
export function examineDependencies(
  records: ReadonlyMap<BundleFacts, BundleRecord>,
  findings: FindingList,
  { signal }: CancelOptions,
): void {
  if (!findings.wants('dependency-unmet')) return;
  const stock = new Stock(records);
  for (const [bundle, { needs }] of records) {
    throwIfCancelled(signal);
    for (const { need, path } of needs) {
      for (const { part, isKnown } of stock.unmetOf(need)) {
        const subject = { package: bundle.package, bundle: bundle.name, origin: bundle.origin, path };
        const hint = isKnown
          ? 'add a matching version to the catalog, or require an available one'
          : 'nothing to do where another catalog on the cluster provides it';
        const message = `depends on ${part.text}, which no bundle of the catalog provides`;
        findings.add('dependency-unmet', subject, message, hint, isKnown ? 'warning' : 'notice');
      }
    }
  }
}

/** What is not there, and whether the package that it should come from is. */
interface Unmet {
  part: Need;
  isKnown: boolean;
}

class Stock {
  readonly #byPackage = new Map<string, Offer[]>();
  readonly #byApi = new Map<string, Offer[]>();
  /** By the text of a need; bundles of one package mostly have the same. */
  readonly #answers = new Map<string, boolean>();

  constructor(records: ReadonlyMap<BundleFacts, BundleRecord>) {
    for (const [bundle, { apis }] of records) {
      const offer: Offer = { package: bundle.package, version: readBundleVersion(bundle), apis };
      pushTo(this.#byPackage, bundle.package, offer);
      for (const api of apis) pushTo(this.#byApi, api, offer);
    }
  }

  unmetOf(need: Need): Unmet[] {
    if (need.kind === 'unclear' || this.#isMet(need)) return [];
    if (need.kind === 'every') return need.parts.flatMap((part) => this.unmetOf(part));
    const isKnown = need.kind === 'one' && need.package !== undefined && this.#byPackage.has(need.package);
    return [{ part: need, isKnown }];
  }

  #isMet(need: Need): boolean {
    if (need.kind === 'unclear') return true;
    if (need.kind !== 'one') {
      const isMet = (part: Need): boolean => this.#isMet(part);
      return need.kind === 'every' ? need.parts.every(isMet) : need.parts.some(isMet);
    }
    const known = this.#answers.get(need.text);
    if (known !== undefined) return known;
    const isMet = this.#offersFor(need).some((offer) => need.isMetBy(offer));
    this.#answers.set(need.text, isMet);
    return isMet;
  }

  #offersFor({ package: packageName, api }: SingleNeed): readonly Offer[] {
    return (packageName !== undefined ? this.#byPackage.get(packageName) : this.#byApi.get(api ?? '')) ?? [];
  }
}
