import type { DocumentPath, Severity } from '../../core/diagnostic.js';
import type { CatalogDiagnostic, CatalogSubject } from '../../model/catalog-diagnostic.js';
import type { BlobOrigin } from '../../model/facts.js';
import { type LinesDownTo, findBlobLines } from '../blob-places.js';
import { type CheckName, checks } from './checks.js';

/** Adds a finding about the value at a path of a blob. */
export type AddFinding = (
  code: CheckName,
  path: DocumentPath | undefined,
  problem: string,
  hint: string,
  severity?: Severity,
) => void;

/** Collects findings of the selected checks and packages. */
export class FindingList {
  readonly all: CatalogDiagnostic<CheckName>[] = [];
  readonly #chosen: ReadonlySet<CheckName>;
  readonly #packages: ReadonlySet<string> | undefined;
  #blob: { origin: BlobOrigin; linesDownTo: LinesDownTo } | undefined;

  constructor(chosen: ReadonlySet<CheckName>, packages: ReadonlySet<string> | undefined) {
    this.#chosen = chosen;
    this.#packages = packages;
  }

  /** Sets the blob that is being checked: lines are found in its text without reading it again. */
  lookAt(blob: { origin: BlobOrigin; text?: string | undefined } | undefined): void {
    this.#blob =
      blob?.text === undefined
        ? undefined
        : { origin: blob.origin, linesDownTo: findBlobLines(blob.text, blob.origin.syntax) };
  }

  /** Reports whether findings of a check are selected. */
  wants(name: CheckName): boolean {
    return this.#chosen.has(name);
  }

  /** Reports whether findings about a package are selected. */
  wantsPackage(name: string): boolean {
    return this.#packages?.has(name) !== false;
  }

  /** Adds a finding with the severity of its check, or another one. */
  add(
    code: CheckName,
    subject: CatalogSubject,
    problem: string,
    hint: string,
    severity: Severity = checks[code].severity,
  ): void {
    if (!this.wants(code) || !this.wantsPackage(subject.package ?? '')) return;
    const linesDownTo = subject.origin === this.#blob?.origin ? this.#blob?.linesDownTo : undefined;
    const line = linesDownTo && 1 + linesDownTo(subject.path ?? []);
    this.push({ severity, code, problem, ...subject, line, hint: hint === '' ? undefined : hint });
  }

  /** Adds a finding about any package. */
  push(finding: CatalogDiagnostic<CheckName>): void {
    if (this.wants(finding.code)) this.all.push(finding);
  }
}
