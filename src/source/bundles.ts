import { OpmateError } from '../core/errors.js';
import { Stage } from '../sqlite/stage.js';
import type { SourceOptions } from './source.js';

export interface StageOptions extends SourceOptions {
  /** Where to pull from in place of a prefix: `quay.io/prod` → `registry.internal/staging`. */
  pullFrom?: readonly { prefix: string; other: string }[] | undefined;
  /** Refuse images that are not named by digest. */
  requireDigest?: boolean | undefined;
  /** Bundles that are read at the same time; 8 unless told. */
  concurrency?: number | undefined;
}

/**
 * Reads bundles (images, directories, layouts) and holds them ready to be added to an index, which records
 * each under the reference that was given. Close the stage afterwards. Throws OpmateError for the first one
 * that cannot be read.
 */
export async function stageBundles(references: readonly string[], options: StageOptions): Promise<Stage> {
  const stage = new Stage(options.temporaryDirectory);
  await stage.close();
  throw new OpmateError('UNSUPPORTED', `${references.join()}: not yet`);
}
