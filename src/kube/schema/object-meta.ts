import { quoteGo } from '../../document/go-json.js';
import { getObject, getText, getValue } from '../../document/json-fields.js';
import type { JsonObject } from '../../document/json.js';
import {
  dns1035LabelFaults,
  dns1123LabelFaults,
  labelKeyFaults,
  labelValueFaults,
  subdomainFaults,
} from '../names.js';
import { childField, type FieldCause } from './schema.js';

/** Returns what the API server refuses in the metadata of a cluster-scoped custom resource. */
export function objectMetaCauses(object: JsonObject): FieldCause[] {
  const field = 'metadata';
  const name = getText(object, field, 'name');
  const causes = labelCauses(object, field);
  if (name === '' && getText(object, field, 'generateName') === '') {
    const message = 'Required value: name or generateName is required';
    causes.push({ field: 'metadata.name', reason: 'FieldValueRequired', message });
  } else if (name !== '') causes.push(...invalid('metadata.name', name, subdomainFaults(name)));
  return causes;
}

/** Returns what the API server refuses in an embedded resource besides its schema. */
export function embeddedResourceCauses(value: JsonObject, field: string): FieldCause[] {
  const causes: FieldCause[] = [];
  for (const key of ['apiVersion', 'kind']) {
    if (getText(value, key) !== '') continue;
    const message = Object.hasOwn(value, key) ? 'Required value: must not be empty' : 'Required value';
    causes.push({ field: childField(field, key), reason: 'FieldValueRequired', message });
  }
  const kind = getText(value, 'kind');
  if (kind !== '') {
    causes.push(...invalid(childField(field, 'kind'), kind, dns1035LabelFaults(kind.toLowerCase())));
  }
  const metadata = childField(field, 'metadata');
  const name = getText(value, 'metadata', 'name');
  if (name === '.' || name === '..' || /[/%]/.test(name)) {
    causes.push(...invalid(`${metadata}.name`, name, ["may not be '.' or '..' or contain '/' or '%'"]));
  }
  const namespace = getText(value, 'metadata', 'namespace');
  if (namespace !== '') {
    causes.push(...invalid(`${metadata}.namespace`, namespace, dns1123LabelFaults(namespace)));
  }
  return [...causes, ...labelCauses(value, metadata)];
}

function invalid(field: string, value: string, faults: readonly string[]): FieldCause[] {
  return faults.map((fault) => ({
    field,
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${quoteGo(value)}: ${fault}`,
  }));
}

function labelCauses(object: JsonObject, field: string): FieldCause[] {
  const causes: FieldCause[] = [];
  for (const [key, value] of Object.entries(getObject(object, 'metadata', 'labels'))) {
    const faults = [...labelKeyFaults(key)];
    causes.push(...invalid(`${field}.labels`, key, faults));
    if (typeof value === 'string') causes.push(...invalid(`${field}.labels`, value, labelValueFaults(value)));
  }
  for (const key of Object.keys(getObject(object, 'metadata', 'annotations'))) {
    causes.push(...invalid(`${field}.annotations`, key, labelKeyFaults(key.toLowerCase())));
  }
  for (const map of ['labels', 'annotations']) {
    for (const value of Object.values(getObject(getValue(object, 'metadata', map)))) {
      if (typeof value === 'string') continue;
      const message = `Invalid value: metadata.${map} must be a map of strings`;
      causes.push({ field: 'metadata', reason: 'FieldValueInvalid', message });
    }
  }
  return causes;
}
