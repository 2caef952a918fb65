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

/**
 * One error for all that is wrong with one input: each on a line of its own with its place and hint, by an
 * AggregateError as cause; a single one as it is. `faults` must not be empty.
 */
export function joinFaults(faults: readonly OpmateError[]): OpmateError {
  const [first] = faults as [OpmateError];
  if (faults.length === 1) return first;
  const placed = faults.map(({ code, message, file, line, hint }) => {
    const isNamed = file === undefined || message.startsWith(file);
    const place = isNamed ? '' : `${file}:${line === undefined ? '' : `${line}:`} `;
    return { code, text: `${place}${message}`, hint };
  });
  const lines = placed.map(
    ({ code, text, hint }) => new OpmateError(code, hint === undefined ? text : `${text} (${hint})`),
  );
  const message = placed.map(({ text }) => text).join('; ');
  return new OpmateError(first.code, message, { cause: new AggregateError(lines) });
}
