import type { Diagnostic } from '../../core/diagnostic.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';

/** The error with all findings about sources, or about the documents of their content. */
export class ContentFindingsError extends DiagnosticsError {
  override readonly name: string = 'ContentFindingsError';

  constructor(diagnostics: readonly Diagnostic[]) {
    super(diagnostics, { code: 'INVALID' });
  }
}
