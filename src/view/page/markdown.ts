/** A piece of a line. */
export type Inline =
  | string
  | { kind: 'code'; text: string }
  | { kind: 'strong' | 'emphasis'; content: Inline[] }
  | { kind: 'link'; url: string; content: Inline[] };

/** A paragraph or what stands in its place. */
export type Block =
  | { kind: 'heading'; level: number; content: Inline[] }
  | { kind: 'paragraph'; content: Inline[] }
  | { kind: 'list'; isOrdered: boolean; items: Inline[][] }
  | { kind: 'code'; text: string }
  | { kind: 'rule' };

/** How far the end of a piece is looked for: what is longer is no emphasis, but an asterisk. */
const maxPiece = 2_000;
const maxDepth = 4;

const item = /^\s{0,12}(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;

/**
 * Reads the part of Markdown that descriptions of operators use: headings, paragraphs, lists, code, emphasis and links
 * to http and https. All else, HTML above all, is text. Takes time linear in the text.
 */
export function parseMarkdown(text: string): Block[] {
  const blocks: Block[] = [];
  const lines = text.replace(/\r\n?/g, '\n').split('\n');
  let paragraph: string[] = [];
  const endParagraph = (): void => {
    if (paragraph.length > 0) {
      blocks.push({ kind: 'paragraph', content: parseInline(paragraph.join(' ')) });
    }
    paragraph = [];
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] as string;
    const fence = /^\s{0,3}(```|~~~)/.exec(line)?.[1];
    const heading = /^\s{0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$/.exec(line);
    const listed = item.exec(line);
    if (fence !== undefined) {
      endParagraph();
      const code: string[] = [];
      while (++at < lines.length && !(lines[at] as string).trimStart().startsWith(fence)) {
        code.push(lines[at] as string);
      }
      blocks.push({ kind: 'code', text: code.join('\n') });
    } else if (line.trim() === '') {
      endParagraph();
    } else if (heading !== null) {
      endParagraph();
      const [, marks = '', title = ''] = heading;
      blocks.push({ kind: 'heading', level: marks.length, content: parseInline(title) });
    } else if (paragraph.length === 1 && /^\s{0,3}(=+|-{2,})\s*$/.test(line)) {
      const level = line.trim().startsWith('=') ? 1 : 2;
      blocks.push({ kind: 'heading', level, content: parseInline(paragraph.join(' ')) });
      paragraph = [];
    } else if (/^\s{0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) {
      endParagraph();
      blocks.push({ kind: 'rule' });
    } else if (listed !== null) {
      endParagraph();
      const isOrdered = listed[1] !== undefined;
      const items: string[] = [listed[2] as string];
      for (; at + 1 < lines.length; at++) {
        const next = lines[at + 1] as string;
        const nextItem = item.exec(next);
        if (nextItem !== null && (nextItem[1] !== undefined) !== isOrdered) break;
        if (nextItem !== null) items.push(nextItem[2] as string);
        else if (/^\s+\S/.test(next) && !/^\s{0,3}(```|~~~|#)/.test(next)) {
          items[items.length - 1] += ` ${next.trim()}`;
        } else break;
      }
      blocks.push({ kind: 'list', isOrdered, items: items.map((one) => parseInline(one)) });
    } else {
      paragraph.push(line.trim());
    }
  }
  endParagraph();
  return blocks;
}

/** Reads what stands in a line. */
export function parseInline(text: string, depth = 0): Inline[] {
  const pieces: Inline[] = [];
  let plain = '';
  const add = (piece: Inline): void => {
    if (plain !== '') pieces.push(plain);
    plain = '';
    pieces.push(piece);
  };
  let at = 0;
  while (at < text.length) {
    const character = text[at] as string;
    const found =
      character === '`'
        ? codeAt(text, at)
        : character === '[' || (character === '!' && text[at + 1] === '[')
          ? linkAt(text, at, depth)
          : character === '*' || character === '_'
            ? emphasisAt(text, at, depth)
            : character === 'h' || character === '<'
              ? addressAt(text, at)
              : undefined;
    if (character === '\\' && /[\\`*_[\]()#+.!<>-]/.test(text[at + 1] ?? '')) {
      plain += text[at + 1];
      at += 2;
    } else if (found === undefined) {
      plain += character;
      at++;
    } else {
      add(found.piece);
      at = found.end;
    }
  }
  if (plain !== '') pieces.push(plain);
  return pieces;
}

interface Found {
  piece: Inline;
  end: number;
}

/** Where a text is, if it is near. */
function near(text: string, wanted: string, from: number): number {
  const at = text.slice(from, from + maxPiece).indexOf(wanted);
  return at < 0 ? -1 : from + at;
}

function codeAt(text: string, at: number): Found | undefined {
  const marks = text.startsWith('``', at) ? '``' : '`';
  const end = near(text, marks, at + marks.length);
  if (end <= at + marks.length) return undefined;
  return {
    piece: { kind: 'code', text: text.slice(at + marks.length, end).trim() },
    end: end + marks.length,
  };
}

function linkAt(text: string, at: number, depth: number): Found | undefined {
  const open = text[at] === '!' ? at + 1 : at;
  const middle = near(text, '](', open);
  if (middle < 0 || depth >= maxDepth) return undefined;
  const end = near(text, ')', middle);
  if (end < 0) return undefined;
  const label = text.slice(open + 1, middle);
  if (label.includes('[')) return undefined;
  const url = webAddress(
    text
      .slice(middle + 2, end)
      .trim()
      .split(/\s/)[0] ?? '',
  );
  // Images would come from outside: their text stands for them.
  if (url === undefined || open !== at) return { piece: label, end: end + 1 };
  return { piece: { kind: 'link', url, content: parseInline(label, depth + 1) }, end: end + 1 };
}

function emphasisAt(text: string, at: number, depth: number): Found | undefined {
  const mark = text[at] as string;
  const marks = text[at + 1] === mark ? mark + mark : mark;
  const start = at + marks.length;
  if (depth >= maxDepth || /\s/.test(text[start] ?? ' ')) return undefined;
  // In a word, an underscore is one.
  if (mark === '_' && /\w/.test(text[at - 1] ?? '')) return undefined;
  const end = near(text, marks, start);
  if (end <= start || /\s/.test(text[end - 1] as string)) return undefined;
  if (mark === '_' && /\w/.test(text[end + marks.length] ?? '')) return undefined;
  const kind = marks.length === 2 ? 'strong' : 'emphasis';
  return {
    piece: { kind, content: parseInline(text.slice(start, end), depth + 1) },
    end: end + marks.length,
  };
}

function addressAt(text: string, at: number): Found | undefined {
  const isBracketed = text[at] === '<';
  const start = isBracketed ? at + 1 : at;
  const found = /^https?:\/\/[^\s<>"'`)\]]+/.exec(text.slice(start, start + maxPiece))?.[0];
  if (found === undefined || (!isBracketed && /\w/.test(text[at - 1] ?? ''))) return undefined;
  if (isBracketed && text[start + found.length] !== '>') return undefined;
  const shown = isBracketed ? found : found.replace(/[.,;:!?]+$/, '');
  const url = webAddress(shown);
  if (url === undefined) return undefined;
  const end = start + shown.length + (isBracketed ? 1 : 0);
  return { piece: { kind: 'link', url, content: [shown] }, end };
}

/** The address of a link to the web; undefined for any other, such as `javascript:`. */
export function webAddress(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined;
  const { protocol, href } = new URL(text);
  return protocol === 'http:' || protocol === 'https:' ? href : undefined;
}
