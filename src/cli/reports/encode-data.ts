import { encodeGoJson } from '../../document/go-json.js';
import type { EncodableJson } from '../../document/json.js';
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
  const data = value as EncodableJson;
  return format === 'yaml' ? encodeYaml(data) : `${encodeGoJson(data, { indent, escapeHtml })}\n`;
}
