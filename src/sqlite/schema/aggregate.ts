import { diagnosticsFrom } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';

/** Joins unique problems in one line as `opm` does: `[first, second]`. */
export function joinMessages(messages: Iterable<string>): string {
  const distinct = [...new Set(messages)];
  return distinct.length === 1 ? (distinct[0] as string) : `[${distinct.join(', ')}]`;
}

/**
 * Returns one error for several, with its message in the form of `opm`; a single one unchanged. Requires at least one
 * error.
 */
export function aggregateErrors(errors: readonly OpmateError[]): OpmateError {
  const [first] = errors as [OpmateError];
  if (errors.length === 1) return first;
  const hint = errors.find((error) => error.hint !== undefined)?.hint;
  const diagnostics = errors.flatMap(diagnosticsFrom);
  return new OpmateError(first.code, joinMessages(errors.map(({ message }) => message)), {
    hint,
    diagnostics,
  });
}
