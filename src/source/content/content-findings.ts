import type { Diagnostic } from '../../core/diagnostic.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';

/** All that is wrong with sources, or with the documents that content is read from. */
export class ContentFindingsError extends DiagnosticsError {
  override readonly name: string = 'ContentFindingsError';

  constructor(diagnostics: readonly Diagnostic[]) {
    super(diagnostics, { code: 'INVALID' });
  }
}
