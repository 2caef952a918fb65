import type { Diagnostic } from '../core/diagnostic.js';
import { OpmateError } from '../core/errors.js';
import { goKindOf, quoteGo } from '../document/go-json.js';
import { foldFieldName } from '../document/go-json-fold.js';
import { type EncodableJson, type JsonValue, RawJson, isJsonObject } from '../document/json.js';
import { type Property, propertyTypes } from './declarative-config.js';

/**
 * The values of properties whose type the catalog format knows, read as Go's decoder reads them: field
 * names match whatever their case, `null` is the zero value, unknown fields are ignored, a value of the
 * wrong kind is an error in that decoder's words. (Source: property.Parse of operator-registry;
 * encoding/json.)
 */

/** A Go type as far as decoding can fail on it. `any` accepts all. */
type GoType =
  | { kind: 'any' }
  | { kind: 'string' | 'boolean' | 'int32'; name: string }
  | { kind: 'list'; name: string; item: GoType }
  | { kind: 'map'; name: string; item: GoType }
  | StructType;

interface StructType {
  kind: 'struct';
  /** Qualified name, as in `property.GVK`. */
  name: string;
  fields: ReadonlyMap<string, GoType>;
  /** Field names by their folded form. */
  folded: ReadonlyMap<string, string>;
}

const any: GoType = { kind: 'any' };
const text: GoType = { kind: 'string', name: 'string' };
const flag: GoType = { kind: 'boolean', name: 'bool' };

function list(item: GoType, name = item.kind === 'any' ? '[]any' : `[]${item.name}`): GoType {
  return { kind: 'list', name, item };
}

function struct(name: string, fields: Record<string, GoType>): StructType {
  const entries = Object.entries(fields);
  return {
    kind: 'struct',
    name,
    fields: new Map(entries),
    folded: new Map(entries.map(([key]) => [foldFieldName(key), key])),
  };
}

function strings(name: string, ...keys: string[]): StructType {
  return struct(name, Object.fromEntries(keys.map((key) => [key, text])));
}

const api = 'v1alpha1';
const stringMap: GoType = { kind: 'map', name: 'map[string]string', item: text };

function descriptors(kind: string): GoType {
  return list(
    struct(`${api}.${kind}Descriptor`, {
      path: text,
      displayName: text,
      description: text,
      'x-descriptors': list(text),
      value: any,
    }),
  );
}

const described = {
  name: text,
  version: text,
  kind: text,
  displayName: text,
  description: text,
  resources: list(strings(`${api}.APIResourceReference`, 'name', 'kind', 'version')),
  statusDescriptors: descriptors('Status'),
  specDescriptors: descriptors('Spec'),
  actionDescriptors: descriptors('Action'),
};
const crds = list(struct(`${api}.CRDDescription`, described));
const apis = list(
  struct(`${api}.APIServiceDescription`, {
    ...described,
    group: text,
    deploymentName: text,
    containerPort: { kind: 'int32', name: 'int32' },
  }),
);
const link = strings(`${api}.AppLink`, 'name', 'url');

const csvMetadata = struct('property.CSVMetadata', {
  annotations: stringMap,
  apiServiceDefinitions: struct(`${api}.APIServiceDefinitions`, { owned: apis, required: apis }),
  crdDescriptions: struct(`${api}.CustomResourceDefinitions`, { owned: crds, required: crds }),
  description: text,
  displayName: text,
  installModes: list(
    struct(`${api}.InstallMode`, {
      type: { kind: 'string', name: `${api}.InstallModeType` },
      supported: flag,
    }),
  ),
  keywords: list(text),
  labels: stringMap,
  links: list(link),
  maintainers: list(strings(`${api}.Maintainer`, 'name', 'email')),
  maturity: text,
  minKubeVersion: text,
  nativeAPIs: list(strings('v1.GroupVersionKind', 'group', 'version', 'kind')),
  provider: link,
});

const packageType = strings('property.Package', 'packageName', 'version', 'release');
const packageRequiredType = strings('property.PackageRequired', 'packageName', 'versionRange');
const gvkType = strings('property.GVK', 'group', 'kind', 'version');
const gvkRequiredType = strings('property.GVKRequired', 'group', 'kind', 'version');
const bundleObjectType = struct('property.BundleObject', { data: { kind: 'string', name: '[]uint8' } });

const knownTypes: ReadonlyMap<string, StructType> = new Map([
  [propertyTypes.package, packageType],
  [propertyTypes.packageRequired, packageRequiredType],
  [propertyTypes.gvk, gvkType],
  [propertyTypes.gvkRequired, gvkRequiredType],
  [propertyTypes.bundleObject, bundleObjectType],
  [propertyTypes.csvMetadata, csvMetadata],
  [propertyTypes.channel, strings('property.Channel', 'channelName')],
]);

/** The value of `olm.package`. */
interface PackageProperty {
  packageName: string;
  version: string;
  release: string;
}

/** Reads the value of an `olm.package` property. Throws OpmateError INVALID in the words of Go's decoder. */
export function parsePackageProperty(value: EncodableJson): PackageProperty {
  return readStrings(value, packageType) as unknown as PackageProperty;
}

/** The value of `olm.package.required`. */
interface PackageRequiredProperty {
  packageName: string;
  versionRange: string;
}

/** Reads the value of an `olm.package.required` property. Throws OpmateError INVALID in the words of Go's decoder. */
export function parsePackageRequiredProperty(value: EncodableJson): PackageRequiredProperty {
  return readStrings(value, packageRequiredType) as unknown as PackageRequiredProperty;
}

/** The value of `olm.gvk` and `olm.gvk.required`: a kind of object of a Kubernetes API. */
interface GvkProperty {
  group: string;
  kind: string;
  version: string;
}

/** Reads the value of an `olm.gvk` or `olm.gvk.required` property. Throws OpmateError INVALID in the words of Go's decoder. */
export function parseGvkProperty(value: EncodableJson): GvkProperty {
  return readStrings(value, gvkType) as unknown as GvkProperty;
}

/**
 * Returns what is wrong with the property at `index` of its list; `invalid-package` where it is the one that names
 * package and version. The base64 of bundle objects is not checked: the reader of the blob has decoded it.
 */
export function findPropertyFault(property: Property, index: number): Diagnostic | undefined {
  const problem = describeFault(property);
  if (problem === undefined) return undefined;
  return {
    severity: 'error',
    code: property.type === propertyTypes.package ? 'invalid-package' : 'invalid-property',
    subject: `parse property[${index}] of type ${quoteGo(property.type)}`,
    problem,
    path: ['properties', index, 'value'],
  };
}

function describeFault(property: Property): string | undefined {
  if (property.valueMissing) return 'unexpected end of JSON input';
  const type = knownTypes.get(property.type);
  return type === undefined ? undefined : findMismatch(property.value, type, undefined, '');
}

/** The first value of the wrong kind, in key order. `owner` is the innermost struct, `path` its way there. */
function findMismatch(
  given: EncodableJson,
  type: GoType,
  owner: StructType | undefined,
  path: string,
): string | undefined {
  if (type.kind === 'any' || given === null) return undefined;
  const value = unwrap(given);
  switch (type.kind) {
    case 'string':
    case 'boolean':
      return typeof value === type.kind ? undefined : mismatch(value, type.name, owner, path);
    case 'int32':
      if (typeof value === 'number' && (value | 0) === value) return undefined;
      return mismatch(value, type.name, owner, path, typeof value === 'number' || typeof value === 'bigint');
    case 'list':
      if (!Array.isArray(value)) return mismatch(value, type.name, owner, path);
      for (const item of value) {
        const problem = findMismatch(item, type.item, owner, path);
        if (problem !== undefined) return problem;
      }
      return undefined;
    case 'map':
    case 'struct':
      if (!isJsonObject(value)) return mismatch(value, type.name, owner, path);
  }
  for (const key of Object.keys(value)) {
    const item = value[key] as EncodableJson;
    let problem: string | undefined;
    if (type.kind === 'map') {
      problem = findMismatch(item, type.item, owner, path);
    } else {
      const field = type.fields.has(key) ? key : type.folded.get(foldFieldName(key));
      if (field === undefined) continue;
      const place = path === '' ? field : `${path}.${field}`;
      problem = findMismatch(item, type.fields.get(field) as GoType, type, place);
    }
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function mismatch(
  value: JsonValue,
  type: string,
  owner: StructType | undefined,
  path: string,
  showNumber = false,
): string {
  const kind = showNumber ? `number ${String(value)}` : goKindOf(value);
  const short = owner?.name.slice(owner.name.indexOf('.') + 1);
  const target =
    owner === undefined ? `value of type ${type}` : `struct field ${short}.${path} of type ${type}`;
  return `json: cannot unmarshal ${kind} into Go ${target}`;
}

function readStrings(given: EncodableJson, type: StructType): Record<string, string> {
  const problem = findMismatch(given, type, undefined, '');
  if (problem !== undefined) throw new OpmateError('INVALID', problem);
  const out: Record<string, string> = {};
  for (const field of type.fields.keys()) out[field] = '';
  const value = unwrap(given);
  if (!isJsonObject(value)) return out;
  // Keys are in byte order, so of several spellings of a field the last one counts, as for Go.
  for (const key of Object.keys(value)) {
    const field = type.fields.has(key) ? key : type.folded.get(foldFieldName(key));
    const item = value[key];
    if (field !== undefined && typeof item === 'string') out[field] = item;
  }
  return out;
}

/** The value of a property, parsed where it is kept as text. */
export function unwrap(value: EncodableJson): JsonValue {
  return (value instanceof RawJson ? JSON.parse(value.text) : value) as JsonValue;
}
