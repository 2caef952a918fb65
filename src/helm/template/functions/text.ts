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

const words = (text: string): string[] =>
  text
    .replace(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2')
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .split(/[\s_.-]+/)
    .filter((word) => word !== '');

function wrap(width: number, text: string, separator: string): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/ /)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join(separator);
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
  upper: define('s', ([text]) => text.toUpperCase()),
  lower: define('s', ([text]) => text.toLowerCase()),
  title: define('s', ([text]) =>
    text.replace(
      /(^|[^\p{L}\p{N}_])(\p{Ll})/gu,
      (_all, before: string, letter: string) => before + letter.toUpperCase(),
    ),
  ),
  untitle: define('s', ([text]) =>
    text.replace(/(^|\s)(\p{Lu})/gu, (_all, before: string, letter: string) => before + letter.toLowerCase()),
  ),
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
    width < 4 || text.length <= width ? text : `${text.slice(0, width - 3)}...`,
  ),
  abbrevboth: define('iis', ([left, right, text]) =>
    right < 4 || (left > 0 && right < 7) || text.length <= right
      ? text
      : `...${text.slice(left, left + right - 6)}...`,
  ),
  nospace: define('s', ([text]) => text.replace(/\s+/g, '')),
  initials: define('s', ([text]) =>
    text
      .split(/\s+/)
      .map((word) => word.slice(0, 1))
      .join(''),
  ),
  swapcase: define('s', ([text]) =>
    [...text].map((name) => (name === name.toUpperCase() ? name.toLowerCase() : name.toUpperCase())).join(''),
  ),
  snakecase: define('s', ([text]) => words(text).join('_').toLowerCase()),
  kebabcase: define('s', ([text]) => words(text).join('-').toLowerCase()),
  camelcase: define('s', ([text]) =>
    words(text)
      .map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
      .join(''),
  ),
  shuffle: define('s', ([text]) => text),
  wrap: define('is', ([width, text]) => wrap(width, text, '\n')),
  wrapWith: define('iss', ([width, separator, text]) => wrap(width, text, separator)),
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
  split: define('ss', ([separator, text]) => numbered(text.split(separator))),
  splitn: define('sis', ([separator, count, text]) => {
    const parts = count === 0 ? [] : text.split(separator);
    if (count > 0 && parts.length > count) parts.push(parts.splice(count - 1).join(separator));
    return numbered(parts);
  }),
  splitList: define('ss', ([separator, text], { budget }) => {
    const parts = text.split(separator);
    budget.requireItems(parts.length);
    return parts;
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
  ...{ base, dir, clean, ext, isAbs },
  ...{ osBase: base, osDir: dir, osClean: clean, osExt: ext, osIsAbs: isAbs },
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
