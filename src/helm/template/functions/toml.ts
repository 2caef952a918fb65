import { formatGoFloat } from '../../../document/go-float.js';
import { evaluationFault } from '../fault.js';
import { type GoMap, type GoValue, GoStruct, deepCopy, getKeys, isGoMap } from '../go-values.js';

/** Returns a value as TOML: values of a table before the tables in it, both by name. (Source: BurntSushi/toml 1.6.) */
export function toToml(value: GoValue): string {
  const content = deepCopy(value, (entry) => (entry instanceof GoStruct ? entry.content : entry));
  if (!isGoMap(content)) return inline(content);
  let text = '';
  const addTable = (table: GoMap, path: readonly string[]): void => {
    const indent = '  '.repeat(path.length);
    for (const [key, item] of entriesOf(table)) {
      const name = [...path, key].join('.');
      if (Array.isArray(item) && isTable(item)) {
        for (const part of item) {
          text += `${text === '' ? '' : '\n'}${indent}[[${name}]]\n`;
          addTable(part as GoMap, [...path, key]);
        }
      } else if (isGoMap(item)) {
        text += `${text === '' || path.length > 0 ? '' : '\n'}${indent}[${name}]\n`;
        addTable(item, [...path, key]);
      } else text += `${indent}${key} = ${inline(item)}\n`;
    }
  };
  addTable(content, []);
  return text;
}

/** Returns the values of a table with their keys as written, without nil. */
function entriesOf(table: GoMap): [key: string, item: GoValue][] {
  const keys = getKeys(table).filter((key) => table[key] !== null);
  return [
    ...keys.filter((key) => !isTable(table[key] as GoValue)),
    ...keys.filter((key) => isTable(table[key] as GoValue)),
  ].map((key) => [/^[\w-]+$/.test(key) ? key : quote(key), table[key] as GoValue]);
}

const isTable = (value: GoValue): boolean =>
  isGoMap(value) || (Array.isArray(value) && value.length > 0 && value.every(isGoMap));

function inline(value: GoValue): string {
  if (typeof value === 'string') return quote(value);
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`;
  if (isGoMap(value))
    return `{${entriesOf(value)
      .map(([key, item]) => `${key} = ${inline(item)}`)
      .join(', ')}}`;
  if (value === null) throw evaluationFault('a list contains nil');
  return typeof value === 'number' ? formatGoFloat(value).replace(/^-?\d+$/, '$&.0') : String(value);
}

const escapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\f': '\\f',
  '\r': '\\r',
};

function quote(text: string): string {
  return `"${text.replace(
    /["\\\p{Cc}]/gu,
    (name) => escapes[name] ?? `\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )}"`;
}
