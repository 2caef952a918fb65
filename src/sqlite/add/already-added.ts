import { OpmateError } from '../../core/errors.js';
import { aggregateErrors } from '../schema/aggregate.js';

/** An image that is to be added is in the index already; exit code 2 of `registry add` and `index add`. */
export class BundleImageAlreadyAddedError extends OpmateError {
  override readonly name: string = 'BundleImageAlreadyAddedError';
}

/** A bundle of the same name or version is in the index already; exit code 3. */
export class VersionAlreadyAddedError extends OpmateError {
  override readonly name: string = 'VersionAlreadyAddedError';
}

/**
 * One error for all that is wrong with an add. Its class, which decides the exit code, is that of the worst:
 * an image that is there, then a version that is there. `errors` must not be empty.
 */
export function joinRefusals(errors: readonly OpmateError[]): OpmateError {
  const joined = aggregateErrors(errors);
  for (const Refusal of [BundleImageAlreadyAddedError, VersionAlreadyAddedError]) {
    if (joined instanceof Refusal) return joined;
    if (errors.some((error) => error instanceof Refusal)) {
      const { code, message, hint, cause, diagnostics } = joined;
      return new Refusal(code, message, { hint, cause, diagnostics });
    }
  }
  return joined;
}
