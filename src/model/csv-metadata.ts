import { OpmateError } from '../core/errors.js';
import { encodeGoJson, quoteGo } from '../document/go-json.js';
import {
  type EncodableJson,
  type JsonObject,
  type JsonValue,
  RawJson,
  isJsonObject,
} from '../document/json.js';
import { parseTolerantVersion } from '../core/semver.js';
import { compareBytes } from '../core/order.js';
import { installShape, objectMetaShape } from './csv.js';
import { type Shape, readShape, struct } from '../kube/shape.js';

/**
 * The `olm.csv.metadata` property: what user interfaces show of an operator, cut out of its
 * ClusterServiceVersion. (Source: property.CSVMetadata of operator-registry; v1alpha1 of
 * operator-framework/api.)
 */

const strings: Shape = { list: 'string' };
const link = struct({ 'name?': 'string', 'url?': 'string' });
const resource = struct({ name: 'string', kind: 'string', version: 'string' });
const groupVersionKind = struct({ group: 'string', version: 'string', kind: 'string' });

const descriptor = struct({
  path: 'string',
  'displayName?': 'string',
  'description?': 'string',
  'x-descriptors?': strings,
  'value?': 'any',
});

const descriptors = {
  'resources?': { list: resource },
  'statusDescriptors?': { list: descriptor },
  'specDescriptors?': { list: descriptor },
  'actionDescriptors?': { list: descriptor },
};

const crdDescription = struct({
  name: 'string',
  version: 'string',
  kind: 'string',
  'displayName?': 'string',
  'description?': 'string',
  ...descriptors,
});

const apiServiceDescription = struct({
  name: 'string',
  group: 'string',
  version: 'string',
  kind: 'string',
  'deploymentName?': 'string',
  'containerPort?': 'int32',
  'displayName?': 'string',
  'description?': 'string',
  ...descriptors,
});

function ownedAndRequired(description: Shape): Shape {
  return struct({ 'owned?': { list: description }, 'required?': { list: description } });
}

const version: Shape = {
  check: (value) => {
    if (typeof value !== 'string') return 'expected a string with a version';
    try {
      parseTolerantVersion(value);
      return undefined;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  },
};

const release: Shape = {
  check: (value) => {
    if (typeof value !== 'string') return 'expected a string with a release';
    const bad = value.split('.').find((part) => !/^(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)$/.test(part));
    return bad === undefined ? undefined : `${JSON.stringify(bad)} is no release identifier`;
  },
};

const webhook = struct({
  generateName: 'string',
  type: 'string',
  deploymentName: 'string',
  containerPort: 'int32',
  failurePolicy: 'string',
  matchPolicy: 'string',
  sideEffects: 'string',
  timeoutSeconds: 'int32',
  admissionReviewVersions: strings,
  reinvocationPolicy: 'string',
  webhookPath: 'string',
  conversionCRDs: strings,
});

/** The whole ClusterServiceVersion as far as a field of the wrong kind would be refused upstream. */
const csvShape = struct({
  apiVersion: 'string',
  kind: 'string',
  metadata: objectMetaShape,
  spec: struct({
    install: installShape,
    version,
    release,
    maturity: 'string',
    customresourcedefinitions: ownedAndRequired(crdDescription),
    apiservicedefinitions: ownedAndRequired(apiServiceDescription),
    webhookdefinitions: { list: webhook },
    nativeAPIs: { list: groupVersionKind },
    minKubeVersion: 'string',
    displayName: 'string',
    description: 'string',
    keywords: strings,
    maintainers: { list: struct({ 'name?': 'string', 'email?': 'string' }) },
    provider: link,
    links: { list: link },
    icon: { list: struct({ base64data: 'string', mediatype: 'string' }) },
    installModes: { list: struct({ type: 'string', supported: 'bool' }) },
    replaces: 'string',
    labels: { map: 'string' },
    annotations: { map: 'string' },
    cleanup: struct({ enabled: 'bool' }),
    skips: strings,
    relatedImages: { list: struct({ name: 'string', image: 'string' }) },
  }),
});

/**
 * Builds the value of an `olm.csv.metadata` property. Fields are in the order of the reference
 * implementation; `apiServiceDefinitions`, `crdDescriptions` and `provider` are always there, others only
 * when they hold something. The free-form `value` of a descriptor keeps its text: keys as they stand in
 * `csv`, and HTML characters escaped unless `escapeHtml` is false (bundle objects have them escaped).
 * Throws OpmateError INVALID, with the path of the field that has the wrong kind.
 */
export function buildCsvMetadata(
  csv: JsonObject,
  options: { escapeHtml?: boolean } = {},
): { [key: string]: EncodableJson } {
  const read = readShape(csv, csvShape, '') as { metadata: JsonObject; spec: JsonObject };
  const { metadata, spec } = read;
  const out: { [key: string]: EncodableJson } = {};
  const add = (key: string, value: JsonValue | undefined): void => {
    if (value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0))
      return;
    out[key] = value;
  };
  add('annotations', sortedMap(metadata['annotations']));
  add('apiServiceDefinitions', spec['apiservicedefinitions']);
  add('crdDescriptions', spec['customresourcedefinitions']);
  for (const key of ['description', 'displayName', 'installModes', 'keywords']) add(key, spec[key]);
  add('labels', sortedMap(metadata['labels']));
  for (const key of ['links', 'maintainers', 'maturity', 'minKubeVersion', 'nativeAPIs', 'provider']) {
    add(key, spec[key]);
  }
  const escapeHtml = options.escapeHtml ?? true;
  for (const key of ['apiServiceDefinitions', 'crdDescriptions']) {
    for (const list of Object.values(out[key] as JsonObject)) freezeDescriptorValues(list, escapeHtml);
  }
  return out;
}

/** Replaces the free-form values by their text, in place: the record was made by this module. */
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

/** Wraps a fault of a CSV for messages of migrations. */
export function csvFault(name: string, error: unknown): unknown {
  if (!(error instanceof OpmateError)) return error;
  return new OpmateError(error.code, `bundle ${quoteGo(name)}: ClusterServiceVersion ${error.message}`, {
    hint: error.hint ?? 'correct this field of the ClusterServiceVersion in the bundle',
    cause: error,
  });
}
