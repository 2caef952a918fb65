import { type Diagnostic, createFault } from '../core/diagnostic.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { type EncodableJson, type JsonValue, RawJson } from '../document/json.js';
import { csvMetadataType } from '../kube/csv-types.js';
import {
  type Nullable,
  type Of,
  type StructType,
  conform,
  describeGoMismatch,
  findTypeFault,
  namedString,
  struct,
} from '../kube/struct.js';
import { type Property, propertyTypes } from './declarative-config.js';

/**
 * Readers of property values of known types, equal to Go's decoder: field names match in any case, `null` is the zero
 * value, unknown fields are ignored, and errors for values of the wrong type have Go's text. (Source: property.Parse of
 * operator-registry; encoding/json.)
 */

const packageType = struct(
  { packageName: 'string', version: 'string', release: 'string' },
  'property.Package',
);
const packageRequiredType = struct(
  { packageName: 'string', versionRange: 'string' },
  'property.PackageRequired',
);
const gvkFields = { group: 'string', kind: 'string', version: 'string' } as const;
const gvkType = struct(gvkFields, 'property.GVK');

const knownTypes: ReadonlyMap<string, StructType> = new Map<string, StructType>([
  [propertyTypes.package, packageType],
  [propertyTypes.packageRequired, packageRequiredType],
  [propertyTypes.gvk, gvkType],
  [propertyTypes.gvkRequired, struct(gvkFields, 'property.GVKRequired')],
  [propertyTypes.bundleObject, struct({ data: namedString('[]uint8') }, 'property.BundleObject')],
  [propertyTypes.csvMetadata, csvMetadataType],
  [propertyTypes.channel, struct({ channelName: 'string' }, 'property.Channel')],
]);

/** Reads the value of an `olm.package` property. Throws OpmateError INVALID in the words of Go's decoder. */
export function parsePackageProperty(value: EncodableJson): Of<typeof packageType> {
  return readProperty(value, packageType);
}

/** Reads the value of an `olm.package.required` property. Throws OpmateError INVALID in the words of Go's decoder. */
export function parsePackageRequiredProperty(value: EncodableJson): Of<typeof packageRequiredType> {
  return readProperty(value, packageRequiredType);
}

/** Reads the value of an `olm.gvk` or `olm.gvk.required` property. Throws OpmateError INVALID in the words of Go's decoder. */
export function parseGvkProperty(value: EncodableJson): Of<typeof gvkType> {
  return readProperty(value, gvkType);
}

/**
 * Returns the fault of the property at `index`, `invalid-package` for an `olm.package` property. Does not check the
 * base64 of bundle objects, which the reader of the blob has decoded.
 */
export function findPropertyFault(property: Property, index: number): Diagnostic | undefined {
  const problem = describeFault(property);
  if (problem === undefined) return undefined;
  const code = property.type === propertyTypes.package ? 'invalid-package' : 'invalid-property';
  const subject = `parse property[${index}] of type ${quoteGo(property.type)}`;
  return createFault(code, problem, { subject, path: ['properties', index, 'value'] });
}

function describeFault(property: Property): string | undefined {
  if (property.valueMissing) return 'unexpected end of JSON input';
  const type = knownTypes.get(property.type);
  if (type === undefined) return undefined;
  const value = getPropertyValue(property.value);
  const fault = findTypeFault(value, type);
  return fault && describeGoMismatch(value, type, fault.path);
}

function readProperty<T extends StructType>(wrapped: EncodableJson, type: T): Nullable<T> {
  const value = getPropertyValue(wrapped);
  const conformed = conform(value, type, { foldNames: true });
  const [fault] = conformed.faults;
  if (fault !== undefined) throw new OpmateError('INVALID', describeGoMismatch(value, type, fault.path));
  return conformed.value;
}

/** Returns the value of a property, parsed if it is text. */
export function getPropertyValue(value: EncodableJson): JsonValue {
  return (value instanceof RawJson ? JSON.parse(value.text) : value) as JsonValue;
}
