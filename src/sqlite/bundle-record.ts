import type { Bundle } from '../bundle/parse.js';
import { OpmateError } from '../core/errors.js';
import type { ApiKey } from '../model/csv.js';

/** A property or dependency as it is stored: its value is JSON text. */
export interface TypedValue {
  type: string;
  value: string;
}

/** All that an index keeps of a bundle but its manifests, as the columns have it. */
export interface BundleRecord {
  /** Name of its ClusterServiceVersion; never empty. */
  name: string;
  packageName: string;
  channels: string[];
  /** May be empty. */
  defaultChannel: string;
  /** May be empty. */
  version: string;
  skipRange: string;
  replaces: string;
  skips: string[];
  substitutesFor: string;
  /** Pull specification that the index records; empty for a bundle that is in no registry. */
  image: string;
  /** Each image once, sorted. */
  relatedImages: string[];
  /** In the order in which they are stored. */
  dependencies: TypedValue[];
  properties: TypedValue[];
  /** Sorted by group, version, kind. */
  providedApis: ApiKey[];
  requiredApis: ApiKey[];
}

/** The manifests of a bundle, as the columns `csv` and `bundle` hold them: JSON texts, each with a line feed. */
export interface BundleManifests {
  csv: string;
  objects: string;
}

/**
 * What an index keeps of a bundle. Throws OpmateError INVALID, with the bundle and what to correct, where the
 * bundle cannot be in an index.
 */
export function recordOf(
  bundle: Bundle,
  image: string,
  subject: string,
): { record: BundleRecord; manifests: BundleManifests } {
  throw new OpmateError('UNSUPPORTED', `${subject}: ${bundle.name} ${image} cannot be added yet`);
}
