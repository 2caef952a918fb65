import { OpmateError } from './errors.js';

/** Several problems in one line, each once, in the form of `opm`: `[first, second]`. */
export function joinMessages(messages: Iterable<string>): string {
  const distinct = [...new Set(messages)];
  return distinct.length === 1 ? (distinct[0] as string) : `[${distinct.join(', ')}]`;
}

/**
 * One error for several, with the hint of the first that has one; its cause is an AggregateError of them all, by
 * which the command line writes each on a line of its own. `errors` must not be empty.
 */
export function joinErrors(errors: readonly OpmateError[]): OpmateError {
  const [first] = errors as [OpmateError];
  if (errors.length === 1) return first;
  const message = joinMessages(errors.map((error) => error.message));
  const hint = errors.find((error) => error.hint !== undefined)?.hint;
  return new OpmateError(first.code, message, { hint, cause: new AggregateError(errors) });
}
