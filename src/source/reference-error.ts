import { CancelledError, OpmateError } from '../core/errors.js';
import { withoutCredentials } from '../core/reference.js';
import { quoteGo } from '../document/go-json.js';

/** The same error in the words of `opm`, which name the reference once. */
export function inReference(error: unknown, reference: string): unknown {
  const shown = withoutCredentials(reference);
  return wrapped(error, `render reference ${quoteGo(shown)}`, shown);
}

/** The same error with more said in front of it, and without `subject` where it began with that. */
export function wrapped(error: unknown, context: string, subject?: string): unknown {
  if (!(error instanceof OpmateError) || error instanceof CancelledError) return error;
  const { hint, file, line, message } = error;
  const quoted = quoteGo(subject ?? '');
  const names =
    subject === undefined ? [] : [`${subject}: `, `image reference ${quoted}: `, `render ${quoted}: `];
  const said = names.find((name) => message.startsWith(name)) ?? '';
  const rest = message.slice(said.length);
  return new OpmateError(error.code, `${context}: ${rest}`, { hint, file, line, cause: error });
}
