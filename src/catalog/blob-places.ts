import { getOrAdd } from '../core/groups.js';
import { countLeading } from '../core/order.js';
import { foldFieldName } from '../document/go-json-fold.js';

/** Keys and indexes from a blob to a part of it. */
type BlobPath = readonly (string | number)[];

/** Returns the number of lines from the start of a blob to the value at a path, or to its deepest existing part. */
export type LinesDownTo = (path: BlobPath) => number;

/**
 * Finds the lines of parts of one blob. Caches what was read of objects, arrays and blocks, so that many paths take
 * little longer than one pass over the text.
 */
export function findBlobLines(text: string, syntax: 'json' | 'yaml'): LinesDownTo {
  const places = syntax === 'json' ? new JsonPlaces(text) : undefined;
  const getOffset = places === undefined ? findYamlPlaces(text) : (path: BlobPath) => places.find(path);
  let lineBreaks: number[] | undefined;
  return (path) => {
    if (path.length === 0 && lineBreaks === undefined) return 0;
    lineBreaks ??= findLineBreaks(text);
    const offset = getOffset(path);
    return countLeading(lineBreaks, (lineBreak) => lineBreak < offset);
  };
}

function findLineBreaks(text: string): number[] {
  const starts: number[] = [];
  for (let position = text.indexOf('\n'); position >= 0; position = text.indexOf('\n', position + 1))
    starts.push(position);
  return starts;
}

/** Part of an object or array that was read. */
interface JsonPart {
  /** Offsets of values by folded key or index. */
  values: Map<string | number, number>;
  /** Offset to continue at; undefined at the end. */
  next: number | undefined;
}

/** Finds values in valid JSON. What lies before a found value is scanned once. */
class JsonPlaces {
  readonly #text: string;
  readonly #parts = new Map<number, JsonPart>();

  constructor(text: string) {
    this.#text = text;
  }

  /** Returns the character offset of the value at a path, or of the last one on the way to it. */
  find(path: BlobPath): number {
    let position = this.#skipSpace(0);
    for (const step of path) {
      const next = this.#stepInto(position, step);
      if (next === undefined) break;
      position = next;
    }
    return position;
  }

  #stepInto(container: number, step: string | number): number | undefined {
    const isArray = typeof step === 'number';
    if (this.#text[container] !== (isArray ? '[' : '{')) return undefined;
    const part = getOrAdd(this.#parts, container, () => ({
      values: new Map(),
      next: this.#skipSpace(container + 1),
    }));
    const wanted = isArray ? step : foldFieldName(step);
    for (;;) {
      const known = part.values.get(wanted);
      if (known !== undefined || part.next === undefined) return known;
      this.#readOne(part, isArray);
    }
  }

  /** Reads the next value of an object or array. A value starts on the line of its key. */
  #readOne(part: JsonPart, isArray: boolean): void {
    let position = part.next as number;
    part.next = undefined;
    if (
      position >= this.#text.length ||
      this.#text[position] === ']' ||
      (!isArray && this.#text[position] !== '"')
    )
      return;
    let key: string | number = part.values.size;
    if (!isArray) {
      const keyEnd = this.#skipValue(position);
      key = foldFieldName(JSON.parse(this.#text.slice(position, keyEnd)) as string);
      position = this.#skipSpace(this.#skipSpace(keyEnd) + 1);
    }
    if (!part.values.has(key)) part.values.set(key, position);
    position = this.#skipSpace(this.#skipValue(position));
    if (this.#text[position] === ',') part.next = this.#skipSpace(position + 1);
  }

  #skipSpace(from: number): number {
    let position = from;
    while (position < this.#text.length && ' \t\r\n'.includes(this.#text[position] as string)) position++;
    return position;
  }

  /** Returns the offset after the value at `from`. */
  #skipValue(from: number): number {
    let depth = 0;
    for (let position = from; position < this.#text.length; position++) {
      const character = this.#text[position] as string;
      if (character === '"') {
        position = stringEnd(this.#text, position);
        if (depth === 0) return position + 1;
      } else if (character === '{' || character === '[') depth++;
      else if (character === '}' || character === ']') {
        if (depth === 0) return position;
        if (--depth === 0) return position + 1;
      } else if (depth === 0 && (character === ',' || ' \t\r\n'.includes(character))) return position;
    }
    return this.#text.length;
  }
}

function stringEnd(text: string, from: number): number {
  for (
    let position = text.indexOf('"', from + 1);
    position >= 0;
    position = text.indexOf('"', position + 1)
  ) {
    let backslashes = 0;
    while (text[position - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return position;
  }
  return text.length;
}

interface YamlHit {
  /** Offsets of the line, and of the following search. */
  line: number;
  content: number;
  indent: number;
}

/** Part of a block that was read; a mapping and a sequence may start at one place and end at different ones. */
interface YamlBlock {
  from: number;
  outer: number;
  /** Column of its keys or dashes, once a line was read. */
  inner: number | undefined;
  keys: Map<string, YamlHit>;
  items: YamlHit[];
  /** Offset to continue at; undefined at the end. */
  next: number | undefined;
}

/** Returns a function that finds the character offset of the line of a path in block-style YAML by indentation. */
function findYamlPlaces(text: string): (path: BlobPath) => number {
  const blocks = new Map<string, YamlBlock>();

  return (path) => {
    let place: YamlHit = { line: 0, content: 0, indent: -1 };
    for (const step of path) {
      const hit = stepInto(place, step);
      if (hit === undefined) break;
      place = hit;
    }
    return place.line;
  };

  function stepInto({ content, indent }: YamlHit, step: string | number): YamlHit | undefined {
    const id = `${typeof step} ${content} ${indent}`;
    const start = { from: content, outer: indent, inner: undefined, next: content };
    const block = getOrAdd(blocks, id, () => ({ ...start, keys: new Map(), items: [] }));
    for (;;) {
      const known = typeof step === 'number' ? block.items[step] : block.keys.get(step.toLowerCase());
      if (known !== undefined || block.next === undefined) return known;
      readLine(block, typeof step === 'number');
    }
  }

  function readLine(block: YamlBlock, isSequence: boolean): void {
    const position = block.next as number;
    block.next = undefined;
    if (position >= text.length) return;
    const lineBreak = text.indexOf('\n', position);
    const end = lineBreak < 0 ? text.length : lineBreak;
    const line = text.slice(position, end);
    const body = line.trim();
    const indent = line.length - line.trimStart().length;
    if (body !== '' && !body.startsWith('#') && !body.startsWith('---')) {
      // The first line of a sequence item has its dash before the content.
      const start =
        position === block.from ? position - (text.lastIndexOf('\n', position - 1) + 1) + indent : indent;
      const isItem = body === '-' || body.startsWith('- ');
      // A sequence may have the indentation of its key.
      if (start < block.outer || (start === block.outer && !(isItem && isSequence))) return;
      block.inner ??= start;
      if (start === block.inner) {
        if (isSequence) {
          const content = Math.min(position + indent + 2, end);
          if (isItem) block.items.push({ line: position, content, indent: start });
        } else {
          const key = toKey(body);
          const hit = { line: position, content: Math.min(end + 1, text.length), indent: start };
          if (key !== undefined && !block.keys.has(key)) block.keys.set(key, hit);
        }
      }
    }
    block.next = end + 1;
  }
}

function toKey(body: string): string | undefined {
  const colon = body.indexOf(':');
  return colon < 0
    ? undefined
    : body
        .slice(0, colon)
        .trim()
        .replace(/^["']|["']$/g, '')
        .toLowerCase();
}
