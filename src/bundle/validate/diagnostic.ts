import type { Diagnostic, DocumentPath } from '../../core/diagnostic.js';

/** Something that a validator found in a bundle; `code` is the validator, by the name that chooses it. */
export interface ValidationDiagnostic extends Diagnostic {
  /** `opm` finds this too but does not report it. */
  isUntold?: boolean;
}

/** What one check found, before it is known which validator ran it and where the file is. */
export type CheckDiagnostic = Omit<Diagnostic, 'code'>;

/** An error at a place of a manifest. */
export function errorAt(path: DocumentPath, problem: string): CheckDiagnostic {
  return { severity: 'error', problem, path };
}

/** The same, but only worth attention. */
export function warningAt(path: DocumentPath, problem: string): CheckDiagnostic {
  return { severity: 'warning', problem, path };
}
