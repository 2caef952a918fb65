import { OpmateError } from '../../core/errors.js';
import { aggregateErrors } from '../schema/aggregate.js';

/** The image of a new bundle is already in the index; exit code 2 of `registry add` and `index add`. */
export class BundleImageAlreadyAddedError extends OpmateError {
  override readonly name: string = 'BundleImageAlreadyAddedError';
}

/** A bundle with the same name or version is already in the index; exit code 3. */
export class VersionAlreadyAddedError extends OpmateError {
  override readonly name: string = 'VersionAlreadyAddedError';
}

/**
 * Returns one error for all problems of an add. Its class, which decides the exit code, is that of the worst: an
 * existing image, then an existing version. Requires at least one error.
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
