import { createHash } from 'node:crypto';
import { getMessage } from '../../../core/errors.js';
import { encodeGoJson, parseGoJson } from '../../../document/go-json.js';
import type { JsonValue } from '../../../document/json.js';
import { encodeYaml, parseYaml } from '../../../document/yaml.js';
import { evaluationFault } from '../fault.js';
import { type GoValue, isGoMap, toJsonValue, toText } from '../go-values.js';
import { sprint, sprintf, sprintln } from '../format.js';
import { type FunctionTable, define, lacking, withMust } from './define.js';

function toYaml(value: GoValue): string {
  return encodeYaml(toJsonValue(value)).replace(/\n$/, '');
}

/** Parses YAML or JSON like Helm: invalid text becomes a map with the error. */
function readMap(text: string, parse: (text: string) => JsonValue): GoValue {
  try {
    const value = parse(text);
    if (value === null) return {};
    return isGoMap(value) ? value : { Error: 'cannot unmarshal into a map' };
  } catch (error) {
    return { Error: getMessage(error) };
  }
}

function readList(text: string, parse: (text: string) => JsonValue): GoValue {
  try {
    const value = parse(text);
    return Array.isArray(value) ? value : value === null ? [] : ['cannot unmarshal into a list'];
  } catch (error) {
    return [getMessage(error)];
  }
}

const json = (indent: number, escapeHtml: boolean) =>
  define('a', ([value]) => encodeGoJson(toJsonValue(value), { indent, escapeHtml }));

const parseJson = define('s', ([text]) => {
  try {
    return parseGoJson(text);
  } catch (error) {
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

function fromBase32(text: string): string {
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

const decode = (from: BufferEncoding) =>
  define('s', ([text]) =>
    /^[A-Za-z0-9+/=\r\n]*$/.test(text)
      ? Buffer.from(text, from).toString()
      : 'illegal base64 data at input byte 0',
  );

const html: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&#34;',
  "'": '&#39;',
};

/** Functions that print and encode. */
export const encodingFunctions: FunctionTable = {
  toYamlPretty: define('a', ([value]) => toYaml(value)),
  fromYaml: define('s', ([text]) => readMap(text, parseYaml)),
  fromYamlArray: define('s', ([text]) => readList(text, parseYaml)),
  fromJson: define('s', ([text]) => readMap(text, parseGoJson)),
  fromJsonArray: define('s', ([text]) => readList(text, parseGoJson)),
  mustFromJson: parseJson,
  ...withMust({
    toYaml: define('a', ([value]) => toYaml(value)),
    toJson: json(0, true),
    toRawJson: json(0, false),
    toPrettyJson: json(2, true),
  }),
  toToml: lacking('toToml', 'TOML is not supported'),
  mustToToml: lacking('mustToToml', 'TOML is not supported'),
  fromToml: lacking('fromToml', 'TOML is not supported'),
  b64enc: define('s', ([text]) => Buffer.from(text).toString('base64')),
  b64dec: decode('base64'),
  b32enc: define('s', ([text]) => toBase32(text)),
  b32dec: define('s', ([text]) => fromBase32(text)),
  sha1sum: hash('sha1'),
  sha256sum: hash('sha256'),
  sha512sum: hash('sha512'),
  adler32sum: define('s', ([text]) => adler32(text)),
  print: define('a*', (values) => sprint(values)),
  println: define('a*', (values) => sprintln(values)),
  printf: define('sa*', ([format, ...values]) => sprintf(format, values)),
  html: define('a*', (values) => sprint(values).replace(/[&<>"']/g, (name) => html[name] as string)),
  js: define('a*', (values) => JSON.stringify(sprint(values)).slice(1, -1)),
  urlquery: define('a*', (values) => encodeURIComponent(values.map(toText).join('')).replaceAll('%20', '+')),
};
