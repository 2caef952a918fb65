/**
 * Slices the texts of elements and fields out of JSON text, for values that must be kept as written. The text must be
 * valid JSON that the caller has parsed.
 */

/** Returns the texts of the elements of a list, in order. */
export function rawElements(text: string): string[] {
  const elements: string[] = [];
  eachValue(text, (_key, value) => elements.push(value));
  return elements;
}

/** Returns the fields of an object as pairs of name and text, in order; names may be duplicate. */
export function rawFields(text: string): [string, string][] {
  const fields: [string, string][] = [];
  eachValue(text, (key, value) => fields.push([JSON.parse(key) as string, value]));
  return fields;
}

function eachValue(text: string, take: (key: string, value: string) => void): void {
  let position = skipSpace(text, 0);
  const isObject = text[position] === '{';
  position = skipSpace(text, position + 1);
  while (position < text.length && text[position] !== '}' && text[position] !== ']') {
    let key = '';
    if (isObject) {
      const end = endOfValue(text, position);
      key = text.slice(position, end);
      position = skipSpace(text, skipSpace(text, end) + 1);
    }
    const end = endOfValue(text, position);
    take(key, text.slice(position, end));
    position = skipSpace(text, end);
    if (text[position] === ',') position = skipSpace(text, position + 1);
  }
}

/** Returns the offset after white space. */
export function skipSpace(text: string, from: number): number {
  let position = from;
  while (position < text.length && ' \t\n\r'.includes(text[position] as string)) position++;
  return position;
}

/** Returns the offset after the value at `from`; for invalid JSON some offset where it no longer resembles a value. */
export function endOfValue(text: string, from: number): number {
  let depth = 0;
  let position = from;
  while (position < text.length) {
    const character = text[position] as string;
    if (character === '"') position = endOfString(text, position);
    else position++;
    if (character === '{' || character === '[') depth++;
    else if (character === '}' || character === ']') depth--;
    else if (character !== '"' && depth === 0) {
      while (position < text.length && !',]} \t\n\r:'.includes(text[position] as string)) position++;
    }
    if (depth <= 0) return position;
  }
  return position;
}

/** Returns the offset after the string at `from`; the end of the text if it is not closed. */
export function endOfString(text: string, from: number): number {
  for (let end = text.indexOf('"', from + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text[end - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return end + 1;
  }
  return text.length;
}

/** Returns the first duplicate key of an object in valid JSON. */
export function findDuplicateKey(text: string): string | undefined {
  const objects: Set<string>[] = [];
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (char === '{') objects.push(new Set());
    else if (char === '}') objects.pop();
    else if (char === '"') {
      const start = i++;
      while (text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
      let next = i + 1;
      while (' \t\r\n'.includes(text[next] ?? '.')) next++;
      if (text[next] !== ':') continue;
      const key = JSON.parse(text.slice(start, i + 1)) as string;
      const keys = objects.at(-1);
      if (keys?.has(key)) return key;
      keys?.add(key);
    }
  }
  return undefined;
}
