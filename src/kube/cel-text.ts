/**
 * Returns an expression in the form that the engine reads as cel-go does: raw strings that end in a backslash become
 * escaped ones, and the dot before an absolute name a blank, since cel-go ignores it without a container. Text after a
 * string without an end stays as it is.
 */
export function toEngineText(text: string): string {
  const pieces: string[] = [];
  let isAfterOperand = false;
  for (let index = 0; index < text.length;) {
    const [word = ''] = matchAt(/(?:[A-Za-z_]\w*|\d[\w.]*)/y, text, index);
    const prefix = /^(?:b|r|br)$/i.test(word) ? word : '';
    const quote = findQuote(text, index + prefix.length);
    const [skipped = ''] = matchAt(/(?:\s+|\/\/[^\n]*)/y, text, index);
    let piece = text[index] as string;
    if (quote !== undefined && (word === '' || prefix !== '')) {
      const start = index + prefix.length;
      const end = findEnd(text, start, quote, /r$/i.test(prefix));
      if (end === undefined) return [...pieces, text.slice(index)].join('');
      piece = text.slice(index, end);
      pieces.push(
        /r$/i.test(prefix) && piece.endsWith(`\\${quote}`) ? escapeRaw(piece, prefix, quote) : piece,
      );
      isAfterOperand = true;
    } else if (skipped !== '') {
      piece = skipped;
      pieces.push(piece);
    } else if (word !== '') {
      piece = word;
      pieces.push(piece);
      isAfterOperand = word !== 'in';
    } else {
      const isLeadingDot =
        piece === '.' && !isAfterOperand && /^\s*[A-Za-z_]/.test(text.slice(index + 1, index + 99));
      pieces.push(isLeadingDot ? ' ' : piece);
      isAfterOperand = ')]}'.includes(piece);
    }
    index += piece.length;
  }
  return pieces.join('');
}

function matchAt(pattern: RegExp, text: string, index: number): string[] {
  pattern.lastIndex = index;
  return pattern.exec(text) ?? [];
}

function findQuote(text: string, index: number): string | undefined {
  return ['"""', "'''", '"', "'"].find((quote) => text.startsWith(quote, index));
}

/** Returns the position after a string; undefined if it has no end. */
function findEnd(text: string, start: number, quote: string, isRaw: boolean): number | undefined {
  for (let index = start + quote.length; index < text.length; index++) {
    const character = text[index] as string;
    if (text.startsWith(quote, index)) return index + quote.length;
    if (character === '\\' && !isRaw) index++;
    else if (quote.length === 1 && (character === '\n' || character === '\r')) return undefined;
  }
  return undefined;
}

function escapeRaw(piece: string, prefix: string, quote: string): string {
  const content = piece.slice(prefix.length + quote.length, -quote.length);
  return `${prefix.slice(0, -1)}${quote}${content.replaceAll('\\', '\\\\')}${quote}`;
}
