import { diagnosticsFrom } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';

/** Returns several problems in one line, each once, in the form of `opm`: `[first, second]`. */
export function joinMessages(messages: Iterable<string>): string {
  const distinct = [...new Set(messages)];
  return distinct.length === 1 ? (distinct[0] as string) : `[${distinct.join(', ')}]`;
}

/** Returns one error for several, its message in the form of `opm`; a single one as it is. Must not be empty. */
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
