/**
 * Cuts the texts of elements and fields out of JSON text, for values that must be kept as they were
 * written. The text must be valid JSON; whoever calls these has parsed it.
 */

/** The texts of the elements of a list, in order. */
export function rawElements(text: string): string[] {
  const elements: string[] = [];
  eachValue(text, (_key, value) => elements.push(value));
  return elements;
}

/** The fields of an object as pairs of name and text, in order; a name may come twice. */
export function rawFields(text: string): [string, string][] {
  const fields: [string, string][] = [];
  eachValue(text, (key, value) => fields.push([JSON.parse(key) as string, value]));
  return fields;
}

function eachValue(text: string, take: (key: string, value: string) => void): void {
  let at = skipSpace(text, 0);
  const isObject = text[at] === '{';
  at = skipSpace(text, at + 1);
  while (at < text.length && text[at] !== '}' && text[at] !== ']') {
    let key = '';
    if (isObject) {
      const end = endOfValue(text, at);
      key = text.slice(at, end);
      at = skipSpace(text, skipSpace(text, end) + 1);
    }
    const end = endOfValue(text, at);
    take(key, text.slice(at, end));
    at = skipSpace(text, end);
    if (text[at] === ',') at = skipSpace(text, at + 1);
  }
}

/** The offset after white space. */
export function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && ' \t\n\r'.includes(text[at] as string)) at++;
  return at;
}

/**
 * The offset after the value that begins at `from`. Where the text is not JSON, some offset at which it
 * stops to look like a value.
 */
export function endOfValue(text: string, from: number): number {
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const character = text[at] as string;
    if (character === '"') at = endOfString(text, at);
    else at++;
    if (character === '{' || character === '[') depth++;
    else if (character === '}' || character === ']') depth--;
    else if (character !== '"' && depth === 0) {
      while (at < text.length && !',]} \t\n\r:'.includes(text[at] as string)) at++;
    }
    if (depth <= 0) return at;
  }
  return at;
}

function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '"') return at + 1;
  }
  return text.length;
}
