import { formatDiagnostic, formatWithHint } from '../../src/core/diagnostic.js';
import { diagnosticsFrom } from '../../src/core/diagnostics-error.js';
import { OpmateError } from '../../src/core/errors.js';

/** Returns what `work` throws, one line per diagnostic; nothing where it throws nothing. */
export function messagesThrown(work: () => unknown, options?: { hints: boolean }): string[] {
  try {
    work();
  } catch (error) {
    return messagesIn(error, options);
  }
  return [];
}

/** Returns the diagnostics of an error, one line each, with hints in parentheses where that is wanted. */
export function messagesIn(error: unknown, { hints } = { hints: false }): string[] {
  if (!(error instanceof OpmateError)) throw error;
  return diagnosticsFrom(error).map(hints ? formatWithHint : formatDiagnostic);
}
