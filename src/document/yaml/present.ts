import {
  COLLECTION_STYLE,
  type Document,
  FAILSAFE_SCHEMA,
  type Node,
  SCALAR_STYLE,
  type ScalarLayout,
  type ScalarNode,
  present,
} from 'js-yaml';
import { LimitError } from '../../core/errors.js';
import { type EncodableJson, type JsonObject, RawJson } from '../json.js';
import { NumberText, type WritableJson, parseRawJson, formatScalar } from './numbers.js';
import { sortedYamlKeys } from './order.js';
import { type YamlTextStyle, chooseStyle, toWellFormed } from './style.js';

/**
 * Writes a document as YAML with js-yaml: keys in natural order, sequences not indented under their key, styles of text
 * as go-yaml chooses them, no lines folded; for bytes of tools that fold lines, see `encodeYaml`. Ends with a line break.
 *
 * A bigint keeps all digits; lone surrogates become U+FFFD. Throws LimitError for values nested some thousand levels
 * deep.
 */
export function encodeYamlDocument(value: EncodableJson): string {
  try {
    const document: Document = { contents: toNode(value), directives: [] };
    return present([document], {
      schema: FAILSAFE_SCHEMA,
      seqNoIndent: true,
      lineWidth: -1,
      scalarStyleRules: [quoteUnsafe],
    });
  } catch (error) {
    if (error instanceof RangeError) throw new LimitError('value is nested too deeply to be written as YAML');
    throw error;
  }
}

/** Returns documents as YAML, each line of `comments` before them. */
export function encodeDocuments(documents: readonly JsonObject[], comments: readonly string[]): string {
  const heading = comments.map((comment) => `# ${comment.replaceAll(/[\r\n]+/g, ' ')}\n`).join('');
  return `${heading}${documents.map((document) => `---\n${encodeYamlDocument(document)}`).join('')}`;
}

function toNode(value: WritableJson): Node {
  if (typeof value === 'string') return toText(value);
  if (value instanceof RawJson) return toNode(parseRawJson(value.text));
  if (value instanceof NumberText) return toScalar(value.yaml, 'plain');
  if (typeof value !== 'object' || value === null) return toScalar(formatScalar(value), 'plain');
  if (Array.isArray(value)) return { ...SEQUENCE, items: value.map(toNode) };
  const object: { readonly [key: string]: WritableJson } = value;
  const items = sortedYamlKeys(object).map((key) => ({
    key: toKey(key),
    value: toNode(object[key] as WritableJson),
  }));
  return { ...MAPPING, items };
}

/** Go omits the quotes of a key `<<`, and its output then reads as a merge. */
function toKey(key: string): ScalarNode {
  return key === '<<' || key.includes('\n') ? toScalar(toWellFormed(key), 'double') : toText(key);
}

function toText(raw: string): ScalarNode {
  const text = toWellFormed(raw);
  return toScalar(text, chooseStyle(text));
}

function toScalar(value: string, style: YamlTextStyle): ScalarNode {
  return { kind: 'scalar', tag: TEXT, tagged: false, style: STYLES[style], value };
}

/** Quotes what js-yaml would not read back in its style. */
function quoteUnsafe(layout: ScalarLayout): void {
  if ((layout.allowedStylesMask & (1 << layout.style)) === 0) layout.style = SCALAR_STYLE.DOUBLE_QUOTED;
}

/** Every scalar has this tag: those without quotes are numbers, booleans and null by their text alone. */
const TEXT = 'tag:yaml.org,2002:str';
const SEQUENCE = {
  kind: 'sequence',
  tag: 'tag:yaml.org,2002:seq',
  tagged: false,
  style: COLLECTION_STYLE.BLOCK,
} as const;
const MAPPING = { ...SEQUENCE, kind: 'mapping', tag: 'tag:yaml.org,2002:map' } as const;
const STYLES = {
  plain: SCALAR_STYLE.PLAIN,
  single: SCALAR_STYLE.SINGLE_QUOTED,
  double: SCALAR_STYLE.DOUBLE_QUOTED,
  literal: SCALAR_STYLE.LITERAL_BLOCK,
} as const;
