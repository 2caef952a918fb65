import { splitLines } from '../../core/text/line-diff.js';
import { isDeepStrictEqual } from 'node:util';
import { encodeGoJson } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { YamlError, encodeYaml, parseYaml, parseYamlWithPlaces } from '../../document/yaml.js';

type Path = (string | number)[];

/**
 * Returns a YAML document with a new value: rewrites only changed lines, so that comments, order and style of the
 * others stay. Supports fields of the root and items of its lists in block style; otherwise, as for flow style,
 * rewrites the whole document below its leading comments.
 */
export function changeYaml(text: string, before: JsonObject, after: JsonObject): string {
  return asEnded(changedLines(text, before, after) ?? rewrittenYaml(text, after), text);
}

/** Ends the text like its model: the last document of a file may lack the last line break. */
function asEnded(text: string, model: string): string {
  return model.endsWith('\n') ? text : text.replace(/\r?\n$/, '');
}

/** Rewrites a YAML document between its leading and trailing comments. */
export function rewrittenYaml(text: string, value: Parameters<typeof encodeYaml>[0]): string {
  const lines = splitLines(text);
  const isOutside = (line: string): boolean => /^(?:---.*|\s*#.*|\s*)\r?\n?$/.test(line);
  const first = lines.findIndex((line) => !isOutside(line));
  const begin = lines.slice(0, first < 0 ? lines.length : first).join('');
  let end = lines.length;
  while (end > first && isOutside(lines[end - 1] as string)) end--;
  const rest = first < 0 ? '' : lines.slice(end).join('');
  const separation = begin === '' || begin.endsWith('\n') ? '' : '\n';
  const body = encodeYaml(value);
  return `${begin}${separation}${text.includes('\r\n') ? body.replaceAll('\n', '\r\n') : body}${rest}`;
}

function changedLines(text: string, before: JsonObject, after: JsonObject): string | undefined {
  const lines = text.replaceAll('\r\n', '\n');
  const isDos = lines.length < text.length;
  // With mixed line endings, those of new lines would be arbitrary.
  if (lines.includes('\r') || (isDos && /(?<!\r)\n/.test(text))) return undefined;
  try {
    const changed = new LineEditor(lines).change(before, after);
    if (changed === undefined || !isDeepStrictEqual(parseYaml(changed), plain(after))) return undefined;
    return isDos ? changed.replaceAll('\n', '\r\n') : changed;
  } catch (error) {
    // The edited lines are not valid YAML.
    if (error instanceof YamlError) return undefined;
    throw error;
  }
}

/** Compares lists of lists and the like by content. */
function plain(value: JsonObject): JsonValue {
  return parseYaml(encodeYaml(value));
}

interface LineEdit {
  from: number;
  to: number;
  lines: string[];
}

/** Lines of a list item: comments above it, its own lines, and their end. */
interface ItemLines {
  comment: number;
  first: number;
  end: number;
}

class LineEditor {
  readonly #lines: string[];
  readonly #edits: LineEdit[] = [];
  readonly #placeOf: (path: Path) => { line: number; column: number } | undefined;

  constructor(text: string) {
    this.#lines = splitLines(text.endsWith('\n') ? text : `${text}\n`);
    const placed = parseYamlWithPlaces(text);
    this.#placeOf = (path) => placed.findPlace(path);
  }

  /** Returns undefined for a document in another style. */
  change(before: JsonObject, after: JsonObject): string | undefined {
    for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
      const [old, wanted] = [before[key], after[key]];
      if (isDeepStrictEqual(old, wanted)) continue;
      const isDone =
        Array.isArray(old) && Array.isArray(wanted)
          ? this.#changeList(key, old, wanted)
          : wanted !== undefined && this.#changeScalar([key], wanted);
      if (!isDone) return undefined;
    }
    const lines = [...this.#lines];
    for (const { from, to, lines: added } of this.#edits.reverse().sort((a, b) => b.from - a.from)) {
      lines.splice(from, to - from, ...added);
    }
    return lines.join('');
  }

  #changeList(key: string, before: JsonValue[], after: JsonValue[]): boolean {
    const places = this.#findItems(key, before.length);
    if (places === undefined || after.length === 0) return false;
    const dash = dashColumn(this.#lines[places[0]?.first ?? -1] ?? '') ?? 0;
    const known = new Set(before.map(toKey));
    const wanted = new Set(after.map(toKey));
    if (known.size < before.length || wanted.size < after.length) return false;
    let position = 0;
    const skipRemoved = (): void => {
      for (; position < before.length && !wanted.has(toKey(before[position] as JsonValue)); position++) {
        const { comment, end } = places[position] as ItemLines;
        this.#edits.push({ from: comment, to: end, lines: [] });
      }
    };
    for (const item of after) {
      skipRemoved();
      const old = before[position];
      const place = places[position];
      if (!known.has(toKey(item))) {
        const from = place?.comment ?? (places.at(-1) as ItemLines).end;
        this.#edits.push({ from, to: from, lines: itemLines(item, dash) });
      } else if (old === undefined || place === undefined || toKey(old) !== toKey(item)) {
        return false;
      } else {
        if (!isDeepStrictEqual(old, item)) this.#changeItem([key, position], place, old, item, dash);
        position++;
      }
    }
    skipRemoved();
    return true;
  }

  #changeItem(path: Path, place: ItemLines, old: JsonValue, item: JsonValue, dash: number): void {
    const mark = this.#edits.length;
    if (isJsonObject(old) && isJsonObject(item) && this.#changeFields(path, place, old, item)) return;
    this.#edits.length = mark;
    this.#edits.push({ from: place.first, to: place.end, lines: itemLines(item, dash) });
  }

  #changeFields(path: Path, place: ItemLines, old: JsonObject, item: JsonObject): boolean {
    const starts = Object.keys(old).map((key) => this.#placeOf([...path, key]));
    const [first] = starts;
    if (first === undefined || starts.some((entry) => entry?.column !== first.column)) return false;
    const lines = starts.map((entry) => (entry?.line ?? 0) - 1);
    if (new Set(lines).size < lines.length) return false;
    for (const key of new Set([...Object.keys(old), ...Object.keys(item)])) {
      const wanted = item[key];
      if (isDeepStrictEqual(old[key], wanted)) continue;
      if (old[key] !== undefined && wanted !== undefined && this.#changeScalar([...path, key], wanted))
        continue;
      const written = wanted === undefined ? [] : fieldLines(key, wanted, first.column - 1);
      const from = old[key] === undefined ? place.end : (this.#placeOf([...path, key])?.line ?? 0) - 1;
      // The line with the dash belongs to the item, not the field.
      if (from === place.first) return false;
      const to = old[key] === undefined ? from : Math.min(place.end, ...lines.filter((line) => line > from));
      this.#edits.push({ from, to, lines: written });
    }
    return true;
  }

  /** Rewrites a scalar on the line of its key. */
  #changeScalar(path: Path, wanted: JsonValue): boolean {
    const position = (this.#placeOf(path)?.line ?? 0) - 1;
    const line = this.#lines[position];
    const key = path.at(-1);
    if (line === undefined || typeof wanted !== 'string' || typeof key !== 'string') return false;
    const match =
      /^([\s-]*(\w+): +)(?:'(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|[\w./(][^#:\n'"]*?)((?: +#.*)?\s*)$/.exec(line);
    const [written, ...more] = splitLines(encodeYaml({ [key]: wanted }));
    if (match === null || match[2] !== key || written === undefined || more.length > 0) return false;
    const value = written.slice(key.length + 2).trimEnd();
    this.#edits.push({ from: position, to: position + 1, lines: [`${match[1]}${value}${match[3]}`] });
    return true;
  }

  /** Returns the lines of each item of a block-style list; undefined for another style. */
  #findItems(key: string, count: number): ItemLines[] | undefined {
    const starts: number[] = [];
    for (let index = 0; index < count; index++) starts.push((this.#placeOf([key, index])?.line ?? 0) - 1);
    const dash = dashColumn(this.#lines[starts[0] ?? -1] ?? '');
    const isBlock = starts.every(
      (line, index) => dashColumn(this.#lines[line] ?? '') === dash && line > (starts[index - 1] ?? -1),
    );
    if (dash === undefined || !isBlock) return undefined;
    return starts.map((first, index) => {
      let end = first + 1;
      const limit = starts[index + 1] ?? this.#lines.length;
      while (end < limit && isWithin(this.#lines[end] as string, dash)) end++;
      // Blank lines and comments below an item belong to the next one.
      while (end > first + 1 && /^\s*(?:#.*)?$/.test((this.#lines[end - 1] as string).trimEnd())) end--;
      let comment = first;
      const floor = index === 0 ? 0 : (starts[index - 1] as number) + 1;
      while (comment > floor && /^\s*#/.test(this.#lines[comment - 1] as string)) comment--;
      // A comment directly below the key belongs to the list.
      return { comment: index === 0 ? first : comment, first, end };
    });
  }
}

/** Returns the zero-based column of a line's dash. */
function dashColumn(line: string): number | undefined {
  return /^( *)- +\S/.exec(line)?.[1]?.length;
}

function isWithin(line: string, dash: number): boolean {
  if (line.trim() === '') return true;
  return line.length - line.trimStart().length > dash || line.trimStart().startsWith('#');
}

/** Returns what identifies an item: its name or reference. */
function toKey(item: JsonValue): string {
  if (!isJsonObject(item)) return encodeGoJson(item);
  return encodeGoJson(item['name'] ?? item['reference'] ?? item);
}

function itemLines(item: JsonValue, dash: number): string[] {
  return indented(encodeYaml([item]), dash);
}

function fieldLines(key: string, value: JsonValue, column: number): string[] {
  return indented(encodeYaml({ [key]: value }), column);
}

function indented(text: string, by: number): string[] {
  return splitLines(text).map((line) => (line === '\n' ? line : `${' '.repeat(by)}${line}`));
}
