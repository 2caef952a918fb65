import {
  type Document,
  type Node,
  type Pair,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
} from 'yaml';

/** Width after which plain and quoted text is folded. */
const width = 80;

/** Text that YAML 1.2 reads as another type than a string, or not at all as plain text. */
const otherTypes =
  /^(?:true|True|TRUE|false|False|FALSE|null|Null|NULL|~|<<|=|[-+]?[0-9_]+|0o?[0-7_]+|[-+]?0b[01_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?(?:[0-9][0-9_]*)?\.?[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|\d{4}-\d{1,2}-\d{1,2}(?:[Tt ].*)?)$/;

/**
 * Writes a template as the release pipeline does, which reads and writes it with a library that keeps comments: a line
 * `---`, lists at the column of their key, comments at their column, and quotes only where needed. (Source: ruamel.yaml,
 * whose defaults operator-pipelines uses.)
 */
export function emitTemplate(document: Document, source: string): string {
  return new Emitter(source, document).emit();
}

class Emitter {
  readonly #source: string;
  readonly #document: Document;
  /** Offsets at which keys and list items of the source start, in order. */
  readonly #starts: number[] = [];
  #text = '---\n';

  constructor(source: string, document: Document) {
    this.#source = source;
    this.#document = document;
    if (document.contents !== null) this.#collectStarts(document.contents);
    this.#starts.push(source.length);
  }

  emit(): string {
    const { contents } = this.#document;
    const [begin = 0] = this.#starts;
    const marker = /^---[^\n]*\n/m.exec(this.#source.slice(0, begin));
    const from = marker === null ? 0 : marker.index + marker[0].length;
    this.#writeLines(this.#source.slice(from, begin));
    if (contents !== null) this.#writeNode(contents, 0, false);
    if (!this.#text.endsWith('\n')) this.#text += '\n';
    return this.#text;
  }

  #collectStarts(node: Node | null): void {
    if (isMap(node)) {
      if (node.flow === true) return;
      for (const pair of node.items as Pair<Node, Node | null>[]) {
        if (pair.key.range) this.#starts.push(pair.key.range[0]);
        this.#collectStarts(pair.value);
      }
    } else if (isSeq(node)) {
      if (node.flow === true) return;
      for (const item of node.items as Node[]) {
        if (item.range) this.#starts.push(item.range[0]);
        this.#collectStarts(item);
      }
    }
  }

  get #column(): number {
    return this.#text.length - this.#text.lastIndexOf('\n') - 1;
  }

  /** Writes a block node at a column; `isInline` after a dash or key on the same line. */
  #writeNode(node: Node | null, column: number, isInList: boolean): void {
    if (isMap(node) && node.flow !== true && node.items.length > 0) this.#writeMap(node, column, isInList);
    else if (isSeq(node) && node.flow !== true && node.items.length > 0)
      this.#writeList(node, column, isInList);
    else this.#writeLeaf(node, column);
  }

  #writeMap(map: YAMLMap, column: number, isInList: boolean): void {
    for (const [index, item] of map.items.entries()) {
      if (!isPair(item)) continue;
      const pair = item as Pair<Scalar, Node | null>;
      if (index > 0 || !isInList) this.#startLine(column);
      this.#text += `${this.#formatScalar(pair.key, false)}:`;
      const { value } = pair;
      const isBlock = isBlockNode(value);
      if (isBlock) {
        const end = pair.key.range?.[1];
        if (end !== undefined) this.#writeGap(this.#source.indexOf(':', end) + 1);
        this.#writeNode(value, isSeq(value) ? column : column + 2, false);
      } else {
        this.#writeLeaf(value, column + 2, pair.key.range?.[1]);
      }
    }
  }

  #writeList(list: YAMLSeq, column: number, isInList: boolean): void {
    for (const [index, item] of list.items.entries()) {
      if (index > 0 || !isInList) this.#startLine(column);
      this.#text += '-';
      const node = item as Node;
      if (isBlockNode(node)) {
        this.#text += ' ';
        this.#writeNode(node, column + 2, true);
      } else this.#writeLeaf(node, column + 2);
    }
  }

  #startLine(column: number): void {
    if (this.#text !== '' && !this.#text.endsWith('\n')) this.#text += '\n';
    this.#text += ' '.repeat(column);
  }

  /** Writes a scalar, alias or flow collection, and the comments behind it. */
  #writeLeaf(node: Node | null, column: number, keyEnd?: number): void {
    if (isScalar(node) && (node.type === 'BLOCK_LITERAL' || node.type === 'BLOCK_FOLDED')) {
      this.#writeBlockText(node, column);
    } else if (node !== null && !(isScalar(node) && node.value === null && node.source === '')) {
      const text = this.#formatNode(node, column);
      this.#text += text === '' ? '' : ` ${text}`;
    }
    const end =
      node?.range?.[1] ?? (keyEnd === undefined ? undefined : this.#source.indexOf(':', keyEnd) + 1);
    if (end !== undefined) this.#writeGap(end);
  }

  #writeBlockText(node: Scalar, column: number): void {
    const lines = (typeof node.value === 'string' ? node.value : '').split('\n');
    const isKept = lines.at(-1) === '' && lines.at(-2) === '';
    const chomping = lines.at(-1) !== '' ? '-' : isKept ? '+' : '';
    if (lines.at(-1) === '') lines.pop();
    this.#text += ` ${node.type === 'BLOCK_LITERAL' ? '|' : '>'}${chomping}\n`;
    this.#text += lines.map((line) => (line === '' ? '' : ' '.repeat(column) + line)).join('\n');
    this.#text += '\n';
  }

  #formatNode(node: Node, column: number): string {
    if (isAlias(node)) return `*${node.source}`;
    const anchor = isScalar(node) || isMap(node) || isSeq(node) ? node.anchor : undefined;
    const prefix = anchor === undefined ? '' : `&${anchor} `;
    if (isScalar(node)) return prefix + this.#fold(this.#formatScalar(node, false), column);
    return prefix + this.#formatFlow(node);
  }

  #formatFlow(node: Node): string {
    if (isMap(node)) {
      const items = (node.items as Pair<Node, Node | null>[]).map(({ key, value }) => {
        const text = value === null ? '' : ` ${this.#formatFlow(value)}`;
        return `${this.#formatFlow(key)}:${text}`;
      });
      return `{${items.join(', ')}}`;
    }
    if (isSeq(node)) return `[${(node.items as Node[]).map((item) => this.#formatFlow(item)).join(', ')}]`;
    if (isAlias(node)) return `*${node.source}`;
    return this.#formatScalar(node as Scalar, true);
  }

  #formatScalar(node: Scalar, isFlow: boolean): string {
    const { value, type, source } = node;
    if (typeof value !== 'string') return source ?? String(value);
    const isWritten = type === 'PLAIN' && source !== undefined && !source.includes('\n');
    if (isWritten || isPlain(value, isFlow)) return value;
    if (/[\n\t\0-\x1f\x7f]/.test(value)) return JSON.stringify(value);
    return `'${value.replaceAll("'", "''")}'`;
  }

  /** Breaks text at single spaces beyond the width; a longer word gets its own line. */
  #fold(text: string, column: number): string {
    let [result, at] = ['', this.#column + 1];
    const indent = `\n${' '.repeat(column)}`;
    for (const [index, word] of text.split(/ /).entries()) {
      const isBroken = index > 0 && at > width && word !== '';
      const separator = index === 0 ? '' : isBroken ? indent : ' ';
      result += separator;
      at = isBroken ? column : at + separator.length;
      const isOwnLine = !text.startsWith("'") && word.length > width && at > column;
      if (isOwnLine) result += indent;
      at = (isOwnLine ? column : at) + word.length;
      result += word;
    }
    return result;
  }

  /** Writes the comments and blank lines between an offset of the source and the next key or item. */
  #writeGap(end: number): void {
    const next = this.#starts.find((start) => start >= end) ?? this.#source.length;
    const gap = this.#source.slice(end, next);
    const [, comment] = /^[ \t]+(#[^\n]*)/.exec(gap) ?? [];
    if (comment !== undefined) {
      const lineStart = this.#source.lastIndexOf('\n', end) + 1;
      const at = this.#source.indexOf('#', end) - lineStart;
      this.#text += ' '.repeat(Math.max(1, at - this.#column)) + comment;
    }
    const firstBreak = gap.indexOf('\n');
    if (firstBreak >= 0) this.#writeLines(gap.slice(firstBreak + 1));
  }

  /** Writes the lines of a text that are comments or blank; the last one is incomplete unless it ends the source. */
  #writeLines(text: string): void {
    const lines = text.split('\n');
    const last = lines.pop() ?? '';
    if (/^[ \t]*#/.test(last)) lines.push(last);
    const kept = lines.filter((line) => /^[ \t]*(?:#|$)/.test(line));
    if (kept.length === 0) return;
    if (!this.#text.endsWith('\n')) this.#text += '\n';
    this.#text += kept.map((line) => `${line.trim() === '' ? '' : line}\n`).join('');
  }
}

function isBlockNode(node: Node | null): boolean {
  return (isMap(node) || isSeq(node)) && node.flow !== true && node.items.length > 0;
}

/** Reports whether a string can be written without quotes. */
function isPlain(text: string, isFlow: boolean): boolean {
  if (text === '' || otherTypes.test(text) || text !== text.trim()) return false;
  if (/^(?:---|\.\.\.)/.test(text) || /^[#,[\]{}&*!|>'"%@`]/.test(text)) return false;
  if (/^[-?:](?:\s|$)/.test(text) || /:(?:\s|$)|\s#/.test(text)) return false;
  if (/[\n\0-\x1f\x7f\x85\u2028\u2029\ufeff]/.test(text)) return false;
  return !isFlow || !/[,[\]{}?]|:/.test(text) || !/[,[\]{}?]/.test(text);
}
