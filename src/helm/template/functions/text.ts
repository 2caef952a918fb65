import type { Budget } from '../budget.js';
import { quoteGo } from '../../../core/go-json-quote.js';
import { sortedByBytes } from '../../../core/order.js';
import { type GoMap, type GoValue, isTrue, setKey, toText } from '../go-values.js';
import { evaluationFault } from '../fault.js';
import { type FunctionTable, define } from './define.js';

const list = (value: GoValue): GoValue[] => (Array.isArray(value) ? value : value === null ? [] : [value]);
/** Returns a count of characters. Throws TemplateFault if negative. */
const requireCount = (count: number): number => {
  if (count < 0) throw evaluationFault('negative count');
  return count;
};
/** Returns values other than nil as text. */
const toTexts = (values: readonly GoValue[]): string[] => values.filter((item) => item !== null).map(toText);
const texts = (value: GoValue): string[] => toTexts(list(value));

function trimStart(text: string, cutset: string): string {
  const cut = new Set(cutset);
  let position = 0;
  while (position < text.length && cut.has(text[position] as string)) position++;
  return text.slice(position);
}

function trimEnd(text: string, cutset: string): string {
  const cut = new Set(cutset);
  let end = text.length;
  while (end > 0 && cut.has(text[end - 1] as string)) end--;
  return text.slice(0, end);
}

const trimAll = define('ss', ([cutset, text]) => trimEnd(trimStart(text, cutset), cutset));

const indentAfter = (start: string) =>
  define('is', ([spaces, text], { budget }) => {
    budget.requireLength(text.length + requireCount(spaces) * text.split('\n').length);
    const pad = ' '.repeat(spaces);
    return start + pad + text.replaceAll('\n', `\n${pad}`);
  });

function byteSlice(text: string, start: number, end: number): string {
  return Buffer.from(text).subarray(start, end).toString();
}

function truncate(length: number, text: string): string {
  const bytes = Buffer.byteLength(text);
  if (length < 0) return bytes + length > 0 ? byteSlice(text, bytes + length, bytes) : text;
  return bytes > length ? byteSlice(text, 0, length) : text;
}

/** Returns parts by number: `_0`. */
function numbered(parts: readonly string[]): GoMap {
  const made: GoMap = {};
  for (const [i, part] of parts.entries()) setKey(made, `_${i}`, part);
  return made;
}

// Go changes case letter by letter: none becomes several, and the last sigma of a word is none of its own.
const lower = (text: string): string => text.replace(/./gsu, (name) => [...name.toLowerCase()][0] as string);
const upper = (text: string): string =>
  text.replace(/./gsu, (name) => ([...name.toUpperCase()].length === 1 ? name.toUpperCase() : name));

/** Words and what separates them: connectors and punctuation. (Source: huandu/xstrings v1.5, nextWord.) */
const wordPattern = (() => {
  const small = '\\p{Ll}\\p{Lt}\\p{Lm}';
  const word = `\\p{Lu}+(?=\\p{Lu}[${small}])|\\p{Lu}{2,}|\\p{Lu}[${small}]*|[${small}]+|[^-_\\s\\p{P}\\p{N}\\p{Lu}${small}]+`;
  return new RegExp(
    `[-_\\s]+|\\p{P}+|\\p{N}[\\p{N}${small}]*|(?:${word})(?:\\p{N}+(?![\\p{N}${small}]))?`,
    'gu',
  );
})();

/** Returns text in lower case, with `connector` between words and for spaces, dashes and underscores. */
function connectWords(text: string, connector: string): string {
  let isWord = false;
  return text.replace(wordPattern, (part) => {
    const isAfterWord = isWord;
    isWord = !/^[-_\s\p{P}]/u.test(part);
    if (/^[-_\s]/.test(part)) return connector.repeat(part.length);
    return (isAfterWord && isWord ? connector : '') + part.replace(/\p{Lu}/gu, lower);
  });
}

function camelcase(text: string): string {
  return text.replace(
    /(^[-_\s]*|[-_\s]+)([^-_\s])(\p{Lu}*)/gu,
    (_all, gap: string, first: string, rest: string, position: number) =>
      (position === 0 ? gap : gap.slice(0, -1)) + upper(first) + (/\p{Lu}/u.test(first) ? lower(rest) : rest),
  );
}

/** Calls a function with one character per byte of UTF-8, and returns its result as text. */
function byBytes(text: string, change: (bytes: string) => string): string {
  return Buffer.from(change(Buffer.from(text).toString('latin1')), 'latin1').toString();
}

/** Wraps at spaces, and if `breaksWords`, within words that are too long. (Source: Masterminds/goutils, WrapCustom.) */
function wrap(text: string, width: number, separator: string, breaksWords: boolean): string {
  const size = Math.max(width, 1);
  const lines: string[] = [];
  let rest = text;
  while (rest.length > size) {
    if (rest.startsWith(' ')) {
      rest = rest.slice(1);
      continue;
    }
    const space = rest.lastIndexOf(' ', size);
    const end = space >= 0 ? space : breaksWords ? size : rest.indexOf(' ', size);
    if (end < 0) break;
    lines.push(rest.slice(0, end));
    rest = rest.slice(space < 0 && breaksWords ? end : end + 1);
  }
  return [...lines, rest].join(separator);
}

/** Shortens text with dots, at its start too from `offset` 5. (Source: Masterminds/goutils, AbbreviateFull.) */
function abbreviate(text: string, offset: number, width: number): string {
  const kept = width - 3;
  if (text.length <= width) return text;
  const start = Math.min(offset, text.length - kept);
  if (start <= 4) return `${text.slice(0, kept)}...`;
  return `...${start + kept < text.length ? abbreviate(text.slice(start), 0, kept) : text.slice(-kept)}`;
}

/** Splits a text, whose parts are counted before they are made. */
function splitText(separator: string, text: string, budget: Budget): string[] {
  let parts = separator === '' ? text.length : 1;
  for (let at = text.indexOf(separator); separator !== '' && at >= 0; parts++)
    at = text.indexOf(separator, at + separator.length);
  budget.requireItems(parts);
  return text.split(separator);
}

/** Functions for text. (Source: Masterminds/sprig v3.) */
export const textFunctions: FunctionTable = {
  trim: define('s', ([text]) => text.trim()),
  trimAll,
  trimall: trimAll,
  trimSuffix: define('ss', ([suffix, text]) =>
    suffix !== '' && text.endsWith(suffix) ? text.slice(0, -suffix.length) : text,
  ),
  trimPrefix: define('ss', ([prefix, text]) => (text.startsWith(prefix) ? text.slice(prefix.length) : text)),
  upper: define('s', ([text]) => upper(text)),
  lower: define('s', ([text]) => lower(text)),
  title: define('s', ([text]) => text.replace(/(?<=^|[^\w\x80-\u{10ffff}]|\s)./gsu, upper)),
  untitle: define('s', ([text]) => text.replace(/(?<=^|\s)\S/gu, lower)),
  repeat: define('is', ([count, text], { budget }) => {
    budget.requireLength(requireCount(count) * text.length);
    return text.repeat(count);
  }),
  substr: define('iis', ([start, end, text]) => {
    const bytes = Buffer.byteLength(text);
    const [from, to] = start < 0 ? [0, end] : [start, end < 0 || end > bytes ? bytes : end];
    if (to < from || to > bytes) throw evaluationFault('slice bounds out of range');
    return byteSlice(text, from, to);
  }),
  trunc: define('is', ([length, text]) => truncate(length, text)),
  abbrev: define('is', ([width, text]) =>
    width < 4 ? text : byBytes(text, (bytes) => abbreviate(bytes, 0, width)),
  ),
  abbrevboth: define('iis', ([left, right, text]) =>
    right < 4 || (left > 0 && right < 7) ? text : byBytes(text, (bytes) => abbreviate(bytes, left, right)),
  ),
  nospace: define('s', ([text]) => text.replace(/\s+/g, '')),
  initials: define('s', ([text]) => (text.match(/(?<=^|\s)\S/gu) ?? []).join('')),
  swapcase: define('s', ([text]) =>
    text.replace(/\p{Lu}|\p{Lt}|(\p{Ll})/gu, (name, isLower) => (isLower ? upper : lower)(name)),
  ),
  snakecase: define('s', ([text]) => connectWords(text, '_')),
  kebabcase: define('s', ([text]) => connectWords(text, '-')),
  camelcase: define('s', ([text]) => camelcase(text)),
  shuffle: define('s', ([text]) => text),
  wrap: define('is', ([width, text]) => byBytes(text, (bytes) => wrap(bytes, width, '\n', false))),
  wrapWith: define('iss', ([width, separator, text]) =>
    byBytes(text, (bytes) => wrap(bytes, width, Buffer.from(separator || '\n').toString('latin1'), true)),
  ),
  contains: define('ss', ([part, text]) => text.includes(part)),
  hasPrefix: define('ss', ([prefix, text]) => text.startsWith(prefix)),
  hasSuffix: define('ss', ([suffix, text]) => text.endsWith(suffix)),
  quote: define('a*', (values) => toTexts(values).map(quoteGo).join(' ')),
  squote: define('a*', (values) =>
    toTexts(values)
      .map((text) => `'${text}'`)
      .join(' '),
  ),
  cat: define('a*', (values) => toTexts(values).join(' ')),
  indent: indentAfter(''),
  nindent: indentAfter('\n'),
  replace: define('sss', ([from, to, text], { budget }) => {
    if (to.length > from.length) budget.requireLength((text.length + 1) * (to.length + 1));
    return from === '' ? to + [...text].map((letter) => letter + to).join('') : text.split(from).join(to);
  }),
  plural: define('ssi', ([name, many, count]) => (count === 1 ? name : many)),
  join: define('sa', ([separator, value], { budget }) => {
    const parts = texts(value);
    budget.requireLength(parts.reduce((sum, part) => sum + part.length + separator.length, 0));
    return parts.join(separator);
  }),
  sortAlpha: define('a', ([value]) => (Array.isArray(value) ? sortedByBytes(texts(value)) : [toText(value)])),
  split: define('ss', ([separator, text], { budget }) => numbered(splitText(separator, text, budget))),
  splitn: define('sis', ([separator, count, text], { budget }) => {
    const parts = count === 0 ? [] : splitText(separator, text, budget);
    if (count > 0 && parts.length > count) parts.push(parts.splice(count - 1).join(separator));
    return numbered(parts);
  }),
  splitList: define('ss', ([separator, text], { budget }) => {
    return splitText(separator, text, budget);
  }),
  toString: define('a', ([value]) => toText(value)),
  toStrings: define('a', ([value]) => texts(value)),
  ternary: define('aab', ([yes, no, condition]) => (condition ? yes : no)),
  default: define('a*', ([otherwise = null, value = null]) => (isTrue(value) ? value : otherwise)),
  empty: define('a', ([value]) => !isTrue(value)),
  coalesce: define('a*', (values) => values.find(isTrue) ?? null),
  all: define('a*', (values) => values.every(isTrue)),
  any: define('a*', (values) => values.some(isTrue)),
  fromBytes: define('s', ([text]) => text),
  hello: define('', () => 'Hello!'),
};

const pathParts = (text: string): string[] => text.split('/').filter((part) => part !== '');

function cleanPath(text: string): string {
  const kept: string[] = [];
  const isAbsolute = text.startsWith('/');
  for (const part of pathParts(text)) {
    if (part === '.') continue;
    if (part !== '..') kept.push(part);
    else if (kept.length > 0 && kept.at(-1) !== '..') kept.pop();
    else if (!isAbsolute) kept.push(part);
  }
  const path = kept.join('/');
  return isAbsolute ? `/${path}` : path === '' ? '.' : path;
}

const base = define('s', ([text]) => (text === '' ? '.' : (pathParts(text).at(-1) ?? '/')));
const dir = define('s', ([text]) => cleanPath(text.slice(0, text.lastIndexOf('/') + 1)));
const clean = define('s', ([text]) => cleanPath(text));
const ext = define('s', ([text]) => /\.[^./]*$/.exec(text)?.[0] ?? '');
const isAbs = define('s', ([text]) => text.startsWith('/'));

export const pathFunctions: FunctionTable = {
  base,
  dir,
  clean,
  ext,
  isAbs,
  osBase: base,
  osDir: dir,
  osClean: clean,
  osExt: ext,
  osIsAbs: isAbs,
  urlParse: define('s', ([text]) => {
    const match =
      /^(?:([A-Za-z][\w+.-]*):)?(?:\/\/(?:([^/?#@]*)@)?([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s.exec(
        text,
      );
    if (match === null || /\p{Cc}|%(?![0-9a-f]{2})/iu.test(text))
      throw evaluationFault('unable to parse url');
    const [, scheme = '', userinfo = '', host = '', rest = '', query = '', fragment = ''] = match;
    const isOpaque = scheme !== '' && host === '' && rest !== '' && !rest.startsWith('/');
    const [path, opaque] = isOpaque ? ['', rest] : [rest, ''];
    const hostname = host.replace(/:\d*$/, '').replace(/^\[|\]$/g, '');
    return { scheme, userinfo, host, hostname, path, query, fragment, opaque };
  }),
  urlJoin: define('m', ([parts]) => {
    const part = (name: string): string => (typeof parts[name] === 'string' ? parts[name] : '');
    const user = part('userinfo') === '' ? '' : `${part('userinfo')}@`;
    const scheme = part('scheme') === '' ? '' : `${part('scheme')}:`;
    const authority = part('host') === '' && user === '' ? '' : `//${user}${part('host')}`;
    const query = part('query') === '' ? '' : `?${part('query')}`;
    const fragment = part('fragment') === '' ? '' : `#${part('fragment')}`;
    return scheme + authority + part('path') + query + fragment;
  }),
};
