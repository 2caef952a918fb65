import { addContext } from '../core/diagnostics-error.js';
import { OpmateError } from '../core/errors.js';
import { encodeGoJson, quoteGo } from '../document/go-json.js';
import {
  type EncodableJson,
  type JsonObject,
  type JsonValue,
  RawJson,
  isJsonObject,
} from '../document/json.js';
import { compareBytes } from '../core/order.js';
import { shownCsv } from '../kube/csv-types.js';
import { readTyped } from '../kube/struct.js';

/**
 * Returns the value of an `olm.csv.metadata` property: the fields of a ClusterServiceVersion that user interfaces show,
 * in the order of opm. `apiServiceDefinitions`, `crdDescriptions` and `provider` are always present, others unless
 * empty. A free-form `value` of a descriptor keeps the order of its keys, and has HTML characters escaped unless
 * `escapeHtml` is false. Throws OpmateError INVALID with the path of a field of the wrong type. (Source:
 * property.CSVMetadata of operator-registry; v1alpha1 of operator-framework/api.)
 */
export function buildCsvMetadata(
  csv: JsonObject,
  options: { escapeHtml?: boolean } = {},
): { [key: string]: EncodableJson } {
  const { metadata, spec } = readTyped(csv, shownCsv, { foldNames: true, inTableOrder: true });
  const out: { [key: string]: EncodableJson } = {};
  const add = (key: string, value: JsonValue | undefined): void => {
    if (value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0))
      return;
    out[key] = value;
  };
  add('annotations', sortedMap(metadata.annotations));
  add('apiServiceDefinitions', spec.apiservicedefinitions);
  add('crdDescriptions', spec.customresourcedefinitions);
  for (const key of ['description', 'displayName', 'installModes', 'keywords'] as const) add(key, spec[key]);
  add('labels', sortedMap(metadata.labels));
  for (const key of [
    'links',
    'maintainers',
    'maturity',
    'minKubeVersion',
    'nativeAPIs',
    'provider',
  ] as const) {
    add(key, spec[key]);
  }
  const escapeHtml = options.escapeHtml ?? true;
  for (const key of ['apiServiceDefinitions', 'crdDescriptions']) {
    for (const list of Object.values(out[key] as JsonObject)) freezeDescriptorValues(list, escapeHtml);
  }
  return out;
}

/** Replaces free-form values with their text, in place. */
function freezeDescriptorValues(descriptions: JsonValue, escapeHtml: boolean): void {
  for (const description of descriptions as JsonObject[]) {
    for (const key of ['statusDescriptors', 'specDescriptors', 'actionDescriptors']) {
      for (const item of (description[key] ?? []) as { [key: string]: EncodableJson }[]) {
        if (item['value'] === undefined) continue;
        item['value'] = new RawJson(encodeGoJson(item['value'], { escapeHtml }));
      }
    }
  }
}

function sortedMap(map: JsonValue | undefined): JsonObject | undefined {
  if (map === undefined || !isJsonObject(map)) return undefined;
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => compareBytes(a, b)));
}

/** Adds the bundle to an error of its ClusterServiceVersion. */
export function csvFault(name: string, error: unknown): unknown {
  if (!(error instanceof OpmateError)) return error;
  return addContext(error, {
    subject: `bundle ${quoteGo(name)}: ClusterServiceVersion`,
    hint: 'fix this field of the ClusterServiceVersion in the bundle',
  });
}
