import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import type { Logger } from '../core/log.js';
import type { Database } from './database.js';
import type { StagedBundle } from './stage.js';

/** How new bundles enter the upgrade graph. */
export type AddMode = 'replaces' | 'semver' | 'semver-skippatch';

export interface AddOptions extends CancelOptions {
  mode: AddMode;
  /** Replace the head of a channel by a bundle of the same name. */
  overwriteLatest?: boolean | undefined;
  /** Add what can be added, and report the rest. */
  permissive?: boolean | undefined;
  /** Take bundles that substitute for others. */
  enableAlpha?: boolean | undefined;
  /** Drop the manifests of bundles that head no channel; always so in the semver modes. */
  minimal?: boolean | undefined;
  /** Keep the manifests of every bundle, whatever the mode. */
  allInOne?: boolean | undefined;
  logger?: Logger | undefined;
}

export interface AddReport {
  /** Names of the bundles that were added, in the order in which they were. */
  added: string[];
  /** With `permissive`: what was left out, and why. */
  failures: { bundle: StagedBundle; error: OpmateError }[];
}

/** An image that is to be added is in the index already; exit code 2 of `registry add` and `index add`. */
export class BundleImageAlreadyAddedError extends OpmateError {
  override readonly name: string = 'BundleImageAlreadyAddedError';
}

/** A bundle of the same name or version is in the index already; exit code 3. */
export class VersionAlreadyAddedError extends OpmateError {
  override readonly name: string = 'VersionAlreadyAddedError';
}

/**
 * Adds bundles to an index, all of them or, unless `permissive`, none. Their order does not matter: they are
 * taken by package, version, name and reference. Runs in the caller's transaction. Throws OpmateError INVALID
 * with every bundle that cannot be added and why.
 */
export async function addBundles(
  database: Database,
  bundles: readonly StagedBundle[],
  options: AddOptions,
): Promise<AddReport> {
  throw new OpmateError('UNSUPPORTED', `${database.name}: ${bundles.length} ${options.mode}: not yet`);
}
