/** Text or an element; `url` is set for links. */
export type MarkdownNode =
  | string
  | {
      tag: 'a' | 'code' | 'em' | 'h4' | 'h5' | 'h6' | 'hr' | 'li' | 'ol' | 'p' | 'pre' | 'strong' | 'ul';
      content: MarkdownNode[];
      url?: string;
    };

/** Maximum characters of an inline element; longer ones are plain text. */
const maxInlineLength = 2_000;
const maxDepth = 4;

const item = /^\s{0,12}(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;

/**
 * Parses the Markdown that descriptions of operators use: headings, paragraphs, lists, code, emphasis, and links to http
 * and https, with headings below those of the page. Everything else, HTML in particular, is text. Takes linear time.
 */
export function parseMarkdown(text: string): MarkdownNode[] {
  const blocks: MarkdownNode[] = [];
  const addHeading = (level: number, title: string): void => {
    const tag = level === 1 ? 'h4' : level === 2 ? 'h5' : 'h6';
    blocks.push({ tag, content: parseInline(title) });
  };
  const lines = text.replace(/\r\n?/g, '\n').split('\n');
  let paragraph: string[] = [];
  const endParagraph = (): void => {
    if (paragraph.length > 0) blocks.push({ tag: 'p', content: parseInline(paragraph.join(' ')) });
    paragraph = [];
  };
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] as string;
    const fence = /^\s{0,3}(```|~~~)/.exec(line)?.[1];
    const heading = /^\s{0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$/.exec(line);
    const listed = item.exec(line);
    if (fence !== undefined) {
      endParagraph();
      const code: string[] = [];
      while (++index < lines.length && !(lines[index] as string).trimStart().startsWith(fence)) {
        code.push(lines[index] as string);
      }
      blocks.push({ tag: 'pre', content: [{ tag: 'code', content: [code.join('\n')] }] });
    } else if (line.trim() === '') {
      endParagraph();
    } else if (heading !== null) {
      endParagraph();
      const [, marks = '', title = ''] = heading;
      addHeading(marks.length, title);
    } else if (paragraph.length === 1 && /^\s{0,3}(=+|-{2,})\s*$/.test(line)) {
      addHeading(line.trim().startsWith('=') ? 1 : 2, paragraph.join(' '));
      paragraph = [];
    } else if (/^\s{0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) {
      endParagraph();
      blocks.push({ tag: 'hr', content: [] });
    } else if (listed !== null) {
      endParagraph();
      const isOrdered = listed[1] !== undefined;
      const items: string[] = [listed[2] as string];
      for (; index + 1 < lines.length; index++) {
        const next = lines[index + 1] as string;
        const nextItem = item.exec(next);
        if (nextItem !== null && (nextItem[1] !== undefined) !== isOrdered) break;
        if (nextItem !== null) items.push(nextItem[2] as string);
        else if (/^\s+\S/.test(next) && !/^\s{0,3}(```|~~~|#)/.test(next)) {
          items[items.length - 1] += ` ${next.trim()}`;
        } else break;
      }
      const content = items.map((name): MarkdownNode => ({ tag: 'li', content: parseInline(name) }));
      blocks.push({ tag: isOrdered ? 'ol' : 'ul', content });
    } else {
      paragraph.push(line.trim());
    }
  }
  endParagraph();
  return blocks;
}

/** Parses the inline elements of a text. */
export function parseInline(text: string, depth = 0): MarkdownNode[] {
  const pieces: MarkdownNode[] = [];
  let plain = '';
  const add = (piece: MarkdownNode): void => {
    if (plain !== '') pieces.push(plain);
    plain = '';
    pieces.push(piece);
  };
  let position = 0;
  while (position < text.length) {
    const character = text[position] as string;
    const match =
      character === '`'
        ? matchCode(text, position)
        : character === '[' || (character === '!' && text[position + 1] === '[')
          ? matchLink(text, position, depth)
          : character === '*' || character === '_'
            ? matchEmphasis(text, position, depth)
            : character === 'h' || character === '<'
              ? matchUrl(text, position)
              : undefined;
    if (character === '\\' && /[\\`*_[\]()#+.!<>-]/.test(text[position + 1] ?? '')) {
      plain += text[position + 1];
      position += 2;
    } else if (match === undefined) {
      plain += character;
      position++;
    } else {
      add(match.piece);
      position = match.end;
    }
  }
  if (plain !== '') pieces.push(plain);
  return pieces;
}

interface InlineMatch {
  piece: MarkdownNode;
  end: number;
}

function findNear(text: string, wanted: string, from: number): number {
  const position = text.slice(from, from + maxInlineLength).indexOf(wanted);
  return position < 0 ? -1 : from + position;
}

function matchCode(text: string, position: number): InlineMatch | undefined {
  const marks = text.startsWith('``', position) ? '``' : '`';
  const end = findNear(text, marks, position + marks.length);
  if (end <= position + marks.length) return undefined;
  return {
    piece: { tag: 'code', content: [text.slice(position + marks.length, end).trim()] },
    end: end + marks.length,
  };
}

function matchLink(text: string, position: number, depth: number): InlineMatch | undefined {
  const open = text[position] === '!' ? position + 1 : position;
  const middle = findNear(text, '](', open);
  if (middle < 0 || depth >= maxDepth) return undefined;
  const end = findNear(text, ')', middle);
  if (end < 0) return undefined;
  const label = text.slice(open + 1, middle);
  if (label.includes('[')) return undefined;
  const url = toWebUrl(
    text
      .slice(middle + 2, end)
      .trim()
      .split(/\s/)[0] ?? '',
  );
  // Images are external: show their text instead.
  if (url === undefined || open !== position) return { piece: label, end: end + 1 };
  return { piece: { tag: 'a', url, content: parseInline(label, depth + 1) }, end: end + 1 };
}

function matchEmphasis(text: string, position: number, depth: number): InlineMatch | undefined {
  const mark = text[position] as string;
  const marks = text[position + 1] === mark ? mark + mark : mark;
  const start = position + marks.length;
  if (depth >= maxDepth || /\s/.test(text[start] ?? ' ')) return undefined;
  // An underscore in a word is not emphasis.
  if (mark === '_' && /\w/.test(text[position - 1] ?? '')) return undefined;
  const end = findNear(text, marks, start);
  if (end <= start || /\s/.test(text[end - 1] as string)) return undefined;
  if (mark === '_' && /\w/.test(text[end + marks.length] ?? '')) return undefined;
  const tag = marks.length === 2 ? 'strong' : 'em';
  return {
    piece: { tag, content: parseInline(text.slice(start, end), depth + 1) },
    end: end + marks.length,
  };
}

function matchUrl(text: string, position: number): InlineMatch | undefined {
  const isBracketed = text[position] === '<';
  const start = isBracketed ? position + 1 : position;
  const match = /^https?:\/\/[^\s<>"'`)\]]+/.exec(text.slice(start, start + maxInlineLength))?.[0];
  if (match === undefined || (!isBracketed && /\w/.test(text[position - 1] ?? ''))) return undefined;
  if (isBracketed && text[start + match.length] !== '>') return undefined;
  const shown = isBracketed ? match : match.replace(/[.,;:!?]+$/, '');
  const url = toWebUrl(shown);
  if (url === undefined) return undefined;
  const end = start + shown.length + (isBracketed ? 1 : 0);
  return { piece: { tag: 'a', url, content: [shown] }, end };
}

/** Returns a normalized http or https URL; undefined for any other, such as `javascript:`. */
export function toWebUrl(text: string): string | undefined {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return undefined;
  const { protocol, href } = new URL(text);
  return protocol === 'http:' || protocol === 'https:' ? href : undefined;
}
