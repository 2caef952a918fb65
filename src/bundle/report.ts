import { type Diagnostic, createFault, createWarning } from '../core/diagnostic.js';

/** Collects what is wrong with an input. */
export class Report {
  /** Problems that must be fixed first. */
  readonly findings: Diagnostic[] = [];
  readonly warnings: Diagnostic[] = [];

  /** Adds a finding, with the arguments of `createFault`. */
  fault(...diagnostic: Parameters<typeof createFault>): void {
    this.findings.push(createFault(...diagnostic));
  }

  /** Adds a warning, with the arguments of `createWarning`. */
  warn(...diagnostic: Parameters<typeof createWarning>): void {
    this.warnings.push(createWarning(...diagnostic));
  }

  /** Adds findings and warnings of a part. */
  add({
    findings = [],
    warnings = [],
  }: Partial<Record<'findings' | 'warnings', readonly Diagnostic[]>>): void {
    this.findings.push(...findings);
    this.warnings.push(...warnings);
  }
}
