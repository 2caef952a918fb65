import { createHash } from 'node:crypto';
import { getMessage } from '../../../core/errors.js';
import { encodeGoJson, parseGoJson } from '../../../document/go-json.js';
import type { JsonValue } from '../../../document/json.js';
import { encodeYaml, parseYaml } from '../../../document/yaml.js';
import { TemplateFault, evaluationFault } from '../fault.js';
import { type GoValue, fromJsonValue, getType, isGoMap, isNumber, toJsonValue } from '../go-values.js';
import { sprint, sprintf, sprintln } from '../format.js';
import { type FunctionTable, define, lacking, withMust } from './define.js';
import { toToml } from './toml.js';

function toYaml(value: GoValue): string {
  return encodeYaml(toJsonValue(value)).replace(/\n$/, '');
}

/** A parser of text, with what Go's errors start with. */
interface Reader {
  parse(text: string): JsonValue;
  syntax: string;
  mismatch: string;
}

const yamlReader: Reader = {
  parse: parseYaml,
  syntax: 'error converting YAML to JSON: ',
  mismatch: 'error unmarshaling JSON: while decoding JSON: ',
};
const jsonReader: Reader = { parse: parseGoJson, syntax: '', mismatch: '' };

/** Parses text like Helm: nil and invalid text become what `toResult` makes of nothing, or of an error. */
function read(
  text: string,
  { parse, syntax, mismatch }: Reader,
  type: string,
  toResult: (fault: string | undefined) => GoValue,
): GoValue {
  let value: GoValue;
  try {
    value = fromJsonValue(parse(text));
  } catch (error) {
    if (error instanceof TemplateFault) throw error;
    return toResult(syntax + getMessage(error));
  }
  if (value === null || getType(value) === type) return value ?? toResult(undefined);
  const kind = Array.isArray(value)
    ? 'array'
    : isGoMap(value)
      ? 'object'
      : isNumber(value)
        ? 'number'
        : getType(value);
  return toResult(`${mismatch}json: cannot unmarshal ${kind} into Go value of type ${type}`);
}

const readMap = (reader: Reader) =>
  define('s', ([text]) =>
    read(text, reader, 'map[string]interface {}', (fault) => (fault === undefined ? {} : { Error: fault })),
  );
const readList = (reader: Reader) =>
  define('s', ([text]) =>
    read(text, reader, '[]interface {}', (fault) => (fault === undefined ? [] : [fault])),
  );

const json = (indent: number, escapeHtml: boolean) =>
  define('a', ([value]) => encodeGoJson(toJsonValue(value), { indent, escapeHtml }));

const parseJson = define('s', ([text]) => {
  try {
    return fromJsonValue(parseGoJson(text));
  } catch (error) {
    if (error instanceof TemplateFault) throw error;
    throw evaluationFault(getMessage(error));
  }
});

const hash = (name: string) => define('s', ([text]) => createHash(name).update(text).digest('hex'));

const base32Letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

function toBase32(text: string): string {
  let bits = '';
  for (const byte of Buffer.from(text)) bits += byte.toString(2).padStart(8, '0');
  const groups = bits.match(/.{1,5}/g) ?? [];
  const letters = groups.map((group) => base32Letters[parseInt(group.padEnd(5, '0'), 2)]).join('');
  return letters.padEnd(Math.ceil(letters.length / 8) * 8, '=');
}

/**
 * Returns the byte offset of the first invalid character of encoded text; undefined if it is valid. `letters` is the
 * alphabet, `size` the number of characters per group.
 */
function findIllegal(text: string, letters: RegExp, size: number): number | undefined {
  const end = text.search(/=*$/);
  const illegal = [...text.slice(0, end)].findIndex((letter) => !letters.test(letter));
  if (illegal >= 0) return Buffer.byteLength(text.slice(0, illegal));
  return text.length % size === 0 && text.length - end < size
    ? undefined
    : text.length - (text.length % size);
}

function fromBase32(written: string): string {
  const text = written.replace(/[\r\n]/g, '');
  const illegal = findIllegal(text, /[A-Z2-7]/, 8);
  if (illegal !== undefined) return `illegal base32 data at input byte ${illegal}`;
  const bits = [...text.replace(/=+$/, '')]
    .map((name) => base32Letters.indexOf(name).toString(2).padStart(5, '0'))
    .join('');
  return Buffer.from((bits.match(/[01]{8}/g) ?? []).map((name) => parseInt(name, 2))).toString();
}

function adler32(text: string): string {
  let [a, b] = [1, 0];
  for (const byte of Buffer.from(text)) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return String(b * 65536 + a);
}

function fromBase64(written: string): string {
  const text = written.replace(/[\r\n]/g, '');
  const illegal = findIllegal(text, /[A-Za-z0-9+/]/, 4);
  if (illegal !== undefined) return `illegal base64 data at input byte ${illegal}`;
  return Buffer.from(text, 'base64').toString();
}

const html: Readonly<Record<string, string>> = {
  '\0': '\ufffd',
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
};

/** Prints values, nil as templates do. (Source: text/template, evalArgs.) */
const printAll = (values: readonly GoValue[]): string => sprint(values.map((value) => value ?? '<no value>'));

/** Returns a character as scripts write it. (Source: text/template, JSEscape.) */
function escapeJs(name: string): string {
  if (name === '\\' || name === "'" || name === '"') return `\\${name}`;
  return `\\u${name.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
}

/** Functions that print and encode. */
export const encodingFunctions: FunctionTable = {
  toYamlPretty: define('a', ([value]) => toYaml(value)),
  fromYaml: readMap(yamlReader),
  fromYamlArray: readList(yamlReader),
  fromJson: readMap(jsonReader),
  fromJsonArray: readList(jsonReader),
  mustFromJson: parseJson,
  ...withMust({
    toYaml: define('a', ([value]) => toYaml(value)),
    toJson: json(0, true),
    toRawJson: json(0, false),
    toPrettyJson: json(2, true),
  }),
  toToml: define('a', ([value]) => toToml(value)),
  fromToml: lacking('fromToml', 'TOML is not supported'),
  b64enc: define('s', ([text]) => Buffer.from(text).toString('base64')),
  b64dec: define('s', ([text]) => fromBase64(text)),
  b32enc: define('s', ([text]) => toBase32(text)),
  b32dec: define('s', ([text]) => fromBase32(text)),
  sha1sum: hash('sha1'),
  sha256sum: hash('sha256'),
  sha512sum: hash('sha512'),
  adler32sum: define('s', ([text]) => adler32(text)),
  print: define('a*', (values) => sprint(values)),
  println: define('a*', (values) => sprintln(values)),
  printf: define('sa*', ([format, ...values]) => sprintf(format, values)),
  html: define('a*', (values) => printAll(values).replace(/[\0&<>"']/g, (name) => html[name] as string)),
  js: define('a*', (values) => printAll(values).replace(/[\\'"<>&=\p{Cc}]/gu, escapeJs)),
  urlquery: define('a*', (values) =>
    encodeURIComponent(printAll(values))
      .replaceAll('%20', '+')
      .replace(/[!'()*]/g, (name) => `%${name.charCodeAt(0).toString(16).toUpperCase()}`),
  ),
};
