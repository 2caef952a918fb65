import { addContext } from '../core/diagnostics-error.js';
import { CancelledError, OpmateError } from '../core/errors.js';
import { withoutCredentials } from '../core/reference.js';
import { quoteGo } from '../document/go-json.js';

/** Returns the same error in the words of `opm`, which name the reference once. */
export function inReference(error: unknown, reference: string): unknown {
  const shown = withoutCredentials(reference);
  return wrapped(error, `render reference ${quoteGo(shown)}`, shown);
}

/** Returns the same error about `context`, which takes the place of the subject `reference`. */
export function wrapped(error: unknown, context: string, reference?: string): unknown {
  if (!(error instanceof OpmateError) || error instanceof CancelledError) return error;
  const replaces = reference === undefined ? [] : getReferenceNames(reference);
  return addContext(error, { subject: context, replaces });
}

/** Returns the subjects that errors about a reference have. */
export function getReferenceNames(reference: string): string[] {
  const quoted = quoteGo(reference);
  return [reference, `image reference ${quoted}`, `render ${quoted}`];
}
