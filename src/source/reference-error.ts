import { addContext } from '../core/diagnostics-error.js';
import { CancelledError, OpmateError } from '../core/errors.js';
import { referenceSubject, withoutCredentials } from '../core/reference.js';
import { quoteGo } from '../document/go-json.js';

/** Returns the error as `opm render` words it: `render reference "…": …`, with the reference once. */
export function inReference(error: unknown, reference: string): unknown {
  const shown = withoutCredentials(reference);
  return wrapped(error, `render reference ${quoteGo(shown)}`, shown);
}

/** Returns the error with the reference as its subject, unless it is about the reference already. */
export function aboutReference(error: unknown, reference: string): unknown {
  const shown = withoutCredentials(reference);
  return wrapped(error, shown, shown);
}

/** Returns a handler of a rejected promise, which throws the error of `aboutReference`. */
export function throwAbout(reference: string): (error: unknown) => never {
  return (error) => {
    throw aboutReference(error, reference);
  };
}

/** Returns the error with `context` as subject, replacing the subject `reference`. */
export function wrapped(error: unknown, context: string, reference?: string): unknown {
  if (!(error instanceof OpmateError) || error instanceof CancelledError) return error;
  const replaces = reference === undefined ? [] : getReferenceNames(reference);
  return addContext(error, { subject: context, replaces });
}

/** Returns all forms in which errors name a reference. */
export function getReferenceNames(reference: string): string[] {
  return [reference, referenceSubject(reference), `render ${quoteGo(reference)}`];
}
