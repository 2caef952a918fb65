import { encodeGoJson } from '../../document/go-json.js';
import { type EncodableJson, RawJson } from '../../document/json.js';
import { encodeYaml } from '../../document/yaml.js';

interface EncodeOptions {
  /** Spaces per level of JSON; default 2. */
  indent?: number;
  /** Escapes `<`, `>` and `&` in JSON. */
  escapeHtml?: boolean;
}

/** Encodes a value as JSON or YAML that ends with a newline; undefined fields are omitted. */
export function encodeData(
  value: object,
  format: 'json' | 'yaml',
  { indent = 2, escapeHtml = false }: EncodeOptions = {},
): string {
  const data = omitUndefined(value as EncodableJson);
  return format === 'yaml' ? encodeYaml(data) : `${encodeGoJson(data, { indent, escapeHtml })}\n`;
}

function omitUndefined(value: EncodableJson | undefined): EncodableJson {
  if (Array.isArray(value)) return value.map(omitUndefined);
  if (typeof value !== 'object' || value === null || value instanceof RawJson) return value ?? null;
  const present = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(present.map(([key, field]) => [key, omitUndefined(field)]));
}
