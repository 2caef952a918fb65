import { addContext } from '../../core/diagnostics-error.js';
import type { Bundle } from '../../bundle/parse.js';
import { OpmateError } from '../../core/errors.js';
import type { JsonObject } from '../../document/json.js';
import { csvIcon, csvSpec, readCsvMetadata } from '../../model/csv.js';
import type { BundleBlob, PackageIcon } from '../../model/declarative-config.js';
import { type Shape, readShape, struct } from '../../kube/shape.js';

/** A bundle that is to be added to a catalog: its blob, and what only its manifests and annotations say. */
export interface NewBundle {
  /** What messages call it. */
  reference: string;
  blob: BundleBlob;
  /** From its annotations. */
  channels: string[];
  /** From its annotations; may be empty. */
  defaultChannel: string;
  /** From its ClusterServiceVersion; empty where that does not say. */
  replaces: string;
  skips: string[];
  skipRange: string;
  icon: PackageIcon | undefined;
  description: string;
}

const list: Shape = { list: 'string' };
const specShape = struct({ 'replaces?': 'string', 'skips?': list, 'description?': 'string' });

/** What adding needs of a bundle that was read and rendered. Throws OpmateError INVALID with the path of a faulty value. */
export function newBundle(bundle: Bundle, blob: BundleBlob, reference: string): NewBundle {
  const { annotations } = readCsvMetadata(bundle.csv);
  const spec = specOf(bundle.csv, reference);
  const skipRange = annotations['olm.skipRange'];
  return {
    reference,
    blob,
    channels: [...new Set(bundle.channels.filter((name) => name !== ''))],
    defaultChannel: bundle.defaultChannel,
    replaces: spec.replaces ?? '',
    skips: spec.skips ?? [],
    skipRange: typeof skipRange === 'string' ? skipRange : '',
    icon: csvIcon(bundle.csv),
    description: spec.description ?? '',
  };
}

interface Spec {
  replaces?: string;
  skips?: string[] | null;
  description?: string;
}

function specOf(csv: JsonObject, reference: string): Spec {
  try {
    return readShape(csvSpec(csv), specShape, 'spec') as Spec;
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw addContext(error, { subject: reference });
  }
}
