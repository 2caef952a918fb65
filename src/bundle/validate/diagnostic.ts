import type { Diagnostic, DocumentPath } from '../../core/diagnostic.js';

/** A finding about a bundle; `code` is the name of the validator. */
export interface ValidationDiagnostic extends Diagnostic {
  /** `opm` finds this too but does not report it. */
  isUnreported?: boolean;
}

/** A finding of a check, before its validator and file are known. */
export type CheckDiagnostic = Omit<Diagnostic, 'code'>;

/** Returns an error at a path of a manifest. */
export function errorAt(path: DocumentPath, problem: string): CheckDiagnostic {
  return { severity: 'error', problem, path };
}

/** Returns a warning at a path of a manifest. */
export function warningAt(path: DocumentPath, problem: string): CheckDiagnostic {
  return { severity: 'warning', problem, path };
}
