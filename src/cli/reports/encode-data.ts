import { encodeGoJson } from '../../document/go-json.js';
import { type EncodableJson, RawJson } from '../../document/json.js';
import { encodeYamlDocument } from '../../document/yaml/present.js';

/**
 * Encodes a value as YAML or JSON that ends with a newline; undefined fields are omitted. `indent` is the number of
 * spaces per level of JSON, `escapeHtml` escapes `<`, `>` and `&` in it.
 */
export function encodeData(
  value: object,
  format: 'json' | 'yaml',
  { indent = 2, escapeHtml = false } = {},
): string {
  const data = omitUndefined(value as EncodableJson);
  return format === 'yaml' ? encodeYamlDocument(data) : `${encodeGoJson(data, { indent, escapeHtml })}\n`;
}

function omitUndefined(value: EncodableJson | undefined): EncodableJson {
  if (Array.isArray(value)) return value.map(omitUndefined);
  if (typeof value !== 'object' || value === null || value instanceof RawJson) return value ?? null;
  const present = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(present.map(([key, field]) => [key, omitUndefined(field)]));
}
