import { encodeGoJson } from '../../document/go-json.js';
import type { EncodableJson, JsonObject } from '../../document/json.js';
import { encodeYaml } from '../../document/yaml.js';
import { type CatalogFormat, jsonIndent } from '../../model/encode.js';
import { changeYaml, rewrittenYaml } from './yaml-text.js';

/** Returns the text of a changed blob in its existing style. */
export function changedText(
  text: string,
  syntax: CatalogFormat,
  before: JsonObject,
  after: JsonObject,
): string {
  return syntax === 'yaml' ? changeYaml(text, before, after) : jsonLike(text, after);
}

/** Returns the text of a blob that replaces another, in its style. */
export function replacedText(text: string, syntax: CatalogFormat, value: EncodableJson): string {
  return syntax === 'yaml' ? rewrittenYaml(text, value) : jsonLike(text, value);
}

/** Returns the text of a new blob next to another, in its style; YAML without the separator line. */
export function textBeside(neighbour: string, syntax: CatalogFormat, value: EncodableJson): string {
  if (syntax === 'json') return jsonLike(neighbour, value);
  const text = encodeYaml(value);
  return neighbour.includes('\r\n') ? text.replaceAll('\n', '\r\n') : text;
}

/** Returns JSON with the indentation and line endings of another text. */
function jsonLike(model: string, value: EncodableJson): string {
  const [, ends = '', indent] = /^\s*\{(\r?\n)([ \t]*)/.exec(model) ?? [];
  if (indent === undefined) return encodeGoJson(value);
  const isTabs = indent.startsWith('\t');
  const width = isTabs ? 1 : indent.length === 0 ? jsonIndent : indent.length;
  let text = encodeGoJson(value, { indent: width });
  if (isTabs) text = text.replace(/^ +/gm, (spaces) => '\t'.repeat(spaces.length));
  return ends === '\r\n' ? text.replaceAll('\n', '\r\n') : text;
}
