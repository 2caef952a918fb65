import { compareBytes } from '../../core/order.js';
import type { CatalogDiagnostic, CatalogSubject } from '../../model/catalog-diagnostic.js';
import type { CatalogWarning } from './catalog-warnings.js';

/** Findings of validating a catalog, with the first error that `opm` stops at. */
export class Findings {
  readonly #problems: CatalogDiagnostic<'invalid'>[] = [];
  readonly #warnings: CatalogWarning[] = [];
  #fatal: string | undefined;

  /** First error of the references between blobs, in the words of `opm`. */
  get fatal(): string | undefined {
    return this.#fatal;
  }

  /** Notes an error at which `opm` stops, without reporting it. */
  stop(problem: string): void {
    this.#fatal ??= problem;
  }

  /** Reports an error at which `opm` stops. */
  fail(problem: string, place: CatalogSubject, hint: string, path = place.path): void {
    this.stop(problem);
    this.report(problem, place, hint, path);
  }

  report(problem: string, place: CatalogSubject, hint: string, path = place.path): void {
    this.#problems.push({ severity: 'error', code: 'invalid', problem, ...place, path, hint });
  }

  warn(warnings: readonly CatalogWarning[]): void {
    this.#warnings.push(...warnings);
  }

  sortedProblems(): CatalogDiagnostic<'invalid'>[] {
    return sortFindings(this.#problems);
  }

  sortedWarnings(): CatalogWarning[] {
    return sortFindings(this.#warnings);
  }
}

/** Sorts by package; within it problems of the package, its channels and its bundles, each in order of detection. */
function sortFindings<T extends CatalogDiagnostic>(findings: T[]): T[] {
  const rank = ({ channel, bundle }: CatalogDiagnostic): number =>
    channel !== undefined ? 1 : bundle !== undefined ? 2 : 0;
  return findings.sort((a, b) => compareBytes(a.package ?? '', b.package ?? '') || rank(a) - rank(b));
}
