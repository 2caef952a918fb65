import { pushTo } from '../core/groups.js';
import type { Need, Offer } from '../model/dependency-needs.js';

/** Offers of bundles by package and API, with the needs that they meet. Offers may be added at any time. */
export class OfferIndex {
  readonly #byPackage = new Map<string, Offer[]>();
  readonly #byApi = new Map<string, Offer[]>();
  readonly #meetsUnclear: boolean;

  /** `meetsUnclear`: treat what cannot be evaluated as met. */
  constructor(options: { meetsUnclear: boolean }) {
    this.#meetsUnclear = options.meetsUnclear;
  }

  add(offer: Offer): void {
    pushTo(this.#byPackage, offer.package, offer);
    for (const api of new Set(offer.apis)) pushTo(this.#byApi, api, offer);
  }

  hasPackage(name: string): boolean {
    return this.#byPackage.has(name);
  }

  meets(need: Need): boolean {
    switch (need.kind) {
      case 'every':
        return need.parts.every((part) => this.meets(part));
      case 'some':
        return need.parts.some((part) => this.meets(part));
      case 'unclear':
        return this.#meetsUnclear;
      case 'one': {
        const { package: name, api = '' } = need;
        const offers = name === undefined ? this.#byApi.get(api) : this.#byPackage.get(name);
        return offers?.some((offer) => need.isMetBy(offer)) === true;
      }
    }
  }

  /** Returns the unmet parts of a need that can be reported separately. */
  unmetParts(need: Need): Need[] {
    if (this.meets(need)) return [];
    return need.kind === 'every' ? need.parts.flatMap((part) => this.unmetParts(part)) : [need];
  }
}
