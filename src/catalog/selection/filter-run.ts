import { type Diagnostic, compareDiagnostics, formatMessage, withSubject } from '../../core/diagnostic.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { emptyFacts } from '../../model/facts.js';
import type { CatalogFilter, RequestPlace } from './catalog-filter.js';
import type { CatalogSelection } from './selection.js';

export interface FilterOptions {
  /** Name of the catalog in messages. */
  catalog: string;
  /** Returns the creation date of a bundle, if it has one; called only for `createdSince`. */
  dayOf?: ((packageName: string, bundle: string) => string | undefined) | undefined;
}

/** A missing name; its hint is the nearest name or version. */
export interface FilterFault {
  code?: 'not-found' | 'invalid-value';
  subject?: string;
  problem: string;
  hint?: string | undefined;
}

/** One application of a filter: what it selected, and what is wrong with it. */
export class FilterRun {
  readonly filter: CatalogFilter;
  readonly options: FilterOptions;
  readonly selection: CatalogSelection = {
    isWhole: false,
    facts: emptyFacts(),
    packages: [],
    kept: [],
    warnings: [],
    changes: [],
  };
  readonly #faults = new Map<string, Diagnostic>();

  constructor(filter: CatalogFilter, options: FilterOptions) {
    this.filter = filter;
    this.options = options;
  }

  /** Notes a fault of the filter, once. */
  fail({ subject, ...place }: RequestPlace, { code = 'not-found', ...fault }: FilterFault): void {
    const diagnostic: Diagnostic = { severity: 'error', code, ...fault, ...place };
    const message = formatMessage(diagnostic);
    if (this.#faults.has(message)) return;
    this.#faults.set(message, subject === undefined ? diagnostic : withSubject(diagnostic, subject));
  }

  /** Throws DiagnosticsError with all faults of the filter. */
  throwIfAtFault(): void {
    if (this.#faults.size > 0)
      throw new DiagnosticsError([...this.#faults.values()].sort(compareDiagnostics));
  }
}
