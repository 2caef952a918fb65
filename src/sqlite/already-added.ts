import { OpmateError } from '../core/errors.js';
import { joinErrors } from '../core/problems.js';

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
  const joined = joinErrors(errors);
  for (const Refusal of [BundleImageAlreadyAddedError, VersionAlreadyAddedError]) {
    if (joined instanceof Refusal) return joined;
    if (errors.some((error) => error instanceof Refusal)) {
      return new Refusal(joined.code, joined.message, { hint: joined.hint, cause: joined.cause });
    }
  }
  return joined;
}
