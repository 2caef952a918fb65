import { propertiesAnnotation } from '../../model/bundle-keys.js';
import { inContext } from '../../core/diagnostics-error.js';
import type { RawProperty } from '../../bundle/metadata.js';
import type { Bundle } from '../../bundle/parse.js';
import { OpmateError } from '../../core/errors.js';
import { encodeGoJson, parseGoJson } from '../../document/go-json.js';
import { type JsonObject, RawJson } from '../../document/json.js';
import { getText } from '../../document/json-fields.js';
import { sortedByBytes } from '../../core/order.js';
import { type ApiKey, csvSpec, readCsvMetadata } from '../../model/csv.js';
import { propertyTypes } from '../../model/declarative-config.js';
import { type StructType, structList, readTyped, strings, struct } from '../../kube/struct.js';

/** A stored property or dependency: its value is JSON text. */
export interface TypedValue {
  type: string;
  value: string;
}

/** Columns of a bundle in an index, without its manifests. */
export interface BundleRecord extends Pick<
  Bundle,
  'packageName' | 'channels' | 'defaultChannel' | 'version' | 'providedApis' | 'requiredApis'
> {
  /** Name of its ClusterServiceVersion; never empty. */
  name: string;
  skipRange: string;
  replaces: string;
  skips: string[];
  substitutesFor: string;
  /** Pull specification recorded in the index; empty for a bundle that is in no registry. */
  image: string;
  /** Images, unique and sorted. */
  relatedImages: string[];
  /** Properties in stored order. */
  dependencies: TypedValue[];
  properties: TypedValue[];
}

/** Manifests of a bundle in the columns `csv` and `bundle`: JSON texts, each with a line feed. */
export interface BundleManifests {
  csv: Buffer;
  objects: Buffer;
}

/**
 * Returns the columns of a bundle. Throws OpmateError INVALID, with the bundle and a remedy, for a bundle that cannot
 * be in an index.
 */
export function toBundleRecord(
  bundle: Bundle,
  image: string,
  subject: string,
): { record: BundleRecord; manifests: BundleManifests } {
  if (bundle.name === '') {
    throw new OpmateError('INVALID', 'csv name not found', {
      subject,
      hint: 'set metadata.name of the ClusterServiceVersion',
    });
  }
  const blame = <T>(work: () => T): T =>
    inContext({ subject }, () => inContext({ subject: bundle.name }, work));
  const { annotations } = readCsvMetadata(bundle.csv);
  const edges = blame(() => readTyped(csvSpec(bundle.csv), edgesType, { path: ['spec'] }));
  blame(() => checkAnnotatedProperties(annotations));
  const { version, providedApis, requiredApis } = bundle;
  const record: BundleRecord = {
    name: bundle.name,
    packageName: bundle.packageName,
    channels: [...new Set(bundle.channels)],
    defaultChannel: bundle.defaultChannel,
    version,
    skipRange: getText(annotations, 'olm.skipRange'),
    replaces: edges.replaces,
    skips: edges.skips ?? [],
    substitutesFor: getText(annotations, 'olm.substitutesFor'),
    image,
    relatedImages: sortedByBytes(
      new Set([
        ...(image === '' ? [] : [image]),
        ...bundle.deploymentImages,
        ...bundle.relatedImages.map((related) => related.image),
      ]),
    ),
    dependencies: [
      ...bundle.dependencies.map(({ type, text }) => ({ type, value: text ?? 'null' })),
      ...requiredApis.map(getGvk),
    ],
    properties: withoutRepeats([...bundle.properties.map(storedProperty), ...providedApis.map(getGvk)]),
    providedApis,
    requiredApis,
  };
  const objects = bundle.objects.map((text) => `${text}\n`).join('');
  return { record, manifests: { csv: Buffer.from(`${bundle.csvText}\n`), objects: Buffer.from(objects) } };
}

/** Upstream reads by exact key, so names are case-sensitive. */
const edgesType = struct({ replaces: 'string', skips: strings });

function getGvk({ group, kind, version }: ApiKey): TypedValue {
  return { type: propertyTypes.gvk, value: encodeGoJson({ group, kind, version }, { escapeHtml: true }) };
}

/** Encodes values without white space, keeping their key order. */
function storedProperty({ type, text }: RawProperty): TypedValue {
  return { type, value: encodeGoJson(new RawJson(text ?? 'null'), { escapeHtml: true }) };
}

/** Returns the values without duplicates. */
export function withoutRepeats<T extends TypedValue>(values: readonly T[]): T[] {
  return [...new Map(values.map((item) => [`${item.type}\0${item.value}`, item])).values()];
}

const listedProperties = structList({ type: 'string', 'value?': 'raw' });

/** Types of property values that an index reads. */
const valueTypes = new Map<string, StructType>([
  ['olm.label', struct({ label: 'string' })],
  [propertyTypes.package, struct({ packageName: 'string', version: 'string', release: 'string' })],
  [propertyTypes.gvk, struct({ group: 'string', kind: 'string', version: 'string' })],
]);

/** Rejects invalid properties in the annotation, which rendering ignores. */
function checkAnnotatedProperties(annotations: JsonObject): void {
  const text = annotations[propertiesAnnotation];
  if (typeof text !== 'string') return;
  try {
    const list = readTyped(parseGoJson(text), listedProperties, { path: ['list'], foldNames: true }) ?? [];
    for (const [index, item] of list.entries()) {
      const type = valueTypes.get(item.type);
      if (type === undefined) continue;
      const { value } = item;
      if (value === undefined) throw new OpmateError('INVALID', `list[${index}].value: not found`);
      readTyped(value, type, { path: ['list', index, 'value'], foldNames: true });
    }
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    const message = `failed to add properties: annotation ${propertiesAnnotation}: ${error.message}`;
    throw new OpmateError('INVALID', message, {
      hint: 'use a JSON list such as [{"type": "olm.label", "value": {"label": "x"}}]',
      cause: error,
    });
  }
}
