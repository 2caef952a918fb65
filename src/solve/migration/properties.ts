import { getAnnotation } from '../../kube/object.js';
import { OpmateError, getMessage } from '../../core/errors.js';
import { parseGoJson } from '../../document/go-json.js';
import { getText, getValue } from '../../document/json-fields.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../document/json.js';
import { rawElements, rawFields } from '../../document/raw-json.js';

/** A property of a bundle; `text` is its value as written. */
interface BundleProperty {
  type: string;
  text: string;
}

const annotation = 'operatorframework.io/properties';

/** Returns the properties that OLM wrote into a ClusterServiceVersion; empty if there are none. */
export function getPropertiesText(csv: JsonObject): string {
  return getAnnotation(csv, annotation);
}

/** Parses a list of properties, or an object with one. Throws OpmateError INVALID or SYNTAX. */
function parseProperties(text: string): BundleProperty[] {
  const value = parseGoJson(text);
  if (value === null) return [];
  if (Array.isArray(value)) return readList(value, text);
  if (!isJsonObject(value)) throw new OpmateError('INVALID', 'json: expected a list of properties');
  const field = rawFields(text).findLast(([name]) => name.toLowerCase() === 'properties');
  const list = getValue(value, field?.[0] ?? 'properties');
  if (field === undefined || list === null || list === undefined) return [];
  if (!Array.isArray(list)) throw new OpmateError('INVALID', 'json: expected a list of properties');
  return readList(list, field[1]);
}

function readList(list: JsonValue[], text: string): BundleProperty[] {
  const elements = rawElements(text);
  return list.map((item, index) => {
    const type = getValue(item, 'type') ?? '';
    if ((item !== null && !isJsonObject(item)) || typeof type !== 'string') {
      throw new OpmateError('INVALID', 'json: expected an object with type and value');
    }
    const raw = rawFields(item === null ? '{}' : (elements[index] as string));
    return { type, text: raw.findLast(([name]) => name === 'value')?.[1] ?? '' };
  });
}

/** Returns the properties of a ClusterServiceVersion, and why they cannot be read. */
export function readProperties(csv: JsonObject): { properties: BundleProperty[]; error?: string } {
  const text = getPropertiesText(csv);
  if (text === '') return { properties: [] };
  try {
    return { properties: parseProperties(text) };
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return { properties: [], error: getMessage(error) };
  }
}

/** Returns the version of an installed bundle: of its package property, else of its ClusterServiceVersion. */
export function getInstalledVersion(csv: JsonObject): string {
  for (const { type, text } of readProperties(csv).properties) {
    if (type !== 'olm.package') continue;
    const version = getText(parseGoJson(text), 'version');
    if (version !== '') return version;
  }
  return getText(csv, 'spec', 'version') || '0.0.0';
}
