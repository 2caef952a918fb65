import { OpmateError } from '../../core/errors.js';
import { parseVersion, tryParse } from '../../core/semver.js';
import { getGoKind, parseGoJson } from '../../document/go-json.js';
import { findField, foldFieldName } from '../../document/go-json-fold.js';
import { type JsonValue, isJsonObject } from '../../document/json.js';
import { rawElements, rawFields } from '../../document/raw-json.js';
import { propertyTypes } from '../../model/declarative-config.js';
import { parseGvkProperty, parsePackageProperty } from '../../model/properties.js';
import type { RuleProperty } from '../../model/property-rule.js';
import type { BundleProperties } from './resolver-types.js';
import type { ApiName } from '../../model/csv.js';

const labelType = 'olm.label';
const deprecatedType = 'olm.deprecated';

/** Reads what the resolver compares from properties; values of the wrong type are ignored, as it does. */
export function readBundleProperties(properties: readonly RuleProperty[]): BundleProperties {
  const packages: { name: string; version: ReturnType<typeof parseVersion> | undefined }[] = [];
  const apis: ApiName[] = [];
  const labels: string[] = [];
  for (const { type, value } of properties) {
    if (type === propertyTypes.package) {
      const read = ifValid(() => parsePackageProperty(value));
      if (read !== undefined)
        packages.push({ name: read.packageName, version: tryParse(parseVersion, read.version) });
    } else if (type === propertyTypes.gvk) {
      const read = ifValid(() => parseGvkProperty(value));
      if (read !== undefined) apis.push({ group: read.group, version: read.version, kind: read.kind });
    } else if (type === labelType) {
      const label = readLabel(value);
      if (label !== undefined) labels.push(label);
    }
  }
  const isDeprecated = properties.some(({ type }) => type === deprecatedType);
  return { properties, packages, apis, labels, isDeprecated };
}

/** Returns the label of an `olm.label` or `olm.label.required` property; undefined for another type of value. */
export function readLabel(value: JsonValue): string | undefined {
  if (value === null) return '';
  if (!isJsonObject(value)) return undefined;
  const label = findField(value, 'label') ?? '';
  return typeof label === 'string' ? label : undefined;
}

/**
 * Returns the properties in the annotation `operatorframework.io/properties` of a ClusterServiceVersion. Throws
 * OpmateError INVALID in OLM's words.
 */
export function parsePropertiesAnnotation(text: string): RuleProperty[] {
  return readRawProperties(text).map(({ type, text: value }) => ({
    type,
    value: value === '' ? null : parseGoJson(value),
  }));
}

/** Returns the properties in the annotation with their values as JSON text; empty without one. Throws OpmateError INVALID. */
export function readRawProperties(annotation: string): { type: string; text: string }[] {
  const fail = (problem: string): OpmateError =>
    new OpmateError('INVALID', `failed to unmarshal properties annotation: ${problem}`);
  const mismatch = (found: JsonValue, field: string, type: string): OpmateError =>
    fail(`json: cannot unmarshal ${getGoKind(found)} into Go struct field ${field} of type ${type}`);
  let value: JsonValue;
  try {
    value = parseGoJson(annotation);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw fail(error.message);
  }
  if (value === null) return [];
  if (!isJsonObject(value))
    throw fail(
      `json: cannot unmarshal ${getGoKind(value)} into Go value of type projection.propertiesAnnotation`,
    );
  const list = findField(value, 'properties') ?? [];
  if (!Array.isArray(list)) throw mismatch(list, 'propertiesAnnotation.properties', '[]projection.property');
  const items = list.length === 0 ? [] : rawElements(findRawField(annotation, 'properties'));
  return items.map((item, index) => {
    if (list[index] === null) return { type: '', text: '' };
    if (!isJsonObject(list[index]))
      throw mismatch(list[index] as JsonValue, 'propertiesAnnotation.properties', 'projection.property');
    const type = findField(list[index], 'type') ?? '';
    if (typeof type !== 'string') throw mismatch(type, 'property.properties.type', 'string');
    return { type, text: findRawField(item, 'value') };
  });
}

/** Returns the text of a field as Go's decoder finds it; empty without the field. */
function findRawField(text: string, name: string): string {
  const folded = foldFieldName(name);
  return rawFields(text).findLast(([key]) => foldFieldName(key) === folded)?.[1] ?? '';
}

function ifValid<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof OpmateError) return undefined;
    throw error;
  }
}
