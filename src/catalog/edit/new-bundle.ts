import { inContext } from '../../core/diagnostics-error.js';
import type { Bundle } from '../../bundle/parse.js';
import type { JsonObject } from '../../document/json.js';
import { getText } from '../../document/json-fields.js';
import { csvIcon, csvSpec, readCsvMetadata } from '../../model/csv.js';
import type { BundleBlob, PackageIcon } from '../../model/declarative-config.js';
import { type Of, readTyped, strings, struct } from '../../kube/struct.js';

/** A bundle to add to a catalog: its blob, and data of its manifests and annotations. */
export interface NewBundle {
  /** Name in messages. */
  reference: string;
  blob: BundleBlob;
  /** From its annotations. */
  channels: string[];
  /** From its annotations; may be empty. */
  defaultChannel: string;
  /** From its ClusterServiceVersion; empty if not set. */
  replaces: string;
  skips: string[];
  skipRange: string;
  icon: PackageIcon | undefined;
  description: string;
}

const specType = struct({ 'replaces?': 'string', 'skips?': strings, 'description?': 'string' });

/**
 * Returns a rendered bundle with the data needed to add it. Throws OpmateError INVALID with the path of an invalid
 * value.
 */
export function newBundle(bundle: Bundle, blob: BundleBlob, reference: string): NewBundle {
  const { annotations } = readCsvMetadata(bundle.csv);
  const spec = getSpec(bundle.csv, reference);
  const skipRange = annotations['olm.skipRange'];
  return {
    reference,
    blob,
    channels: [...new Set(bundle.channels.filter((name) => name !== ''))],
    defaultChannel: bundle.defaultChannel,
    replaces: spec.replaces ?? '',
    skips: spec.skips ?? [],
    skipRange: getText(skipRange),
    icon: csvIcon(bundle.csv),
    description: spec.description ?? '',
  };
}

function getSpec(csv: JsonObject, reference: string): Of<typeof specType> {
  return inContext({ subject: reference }, () =>
    readTyped(csvSpec(csv), specType, { path: ['spec'], foldNames: true }),
  );
}
