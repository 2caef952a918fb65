/**
 * Returns the offset at which Go reports text that is invalid as standard padded base64, undefined for valid text. Line
 * breaks are allowed anywhere. (Source: decodeQuantum of Go's encoding/base64, which reads icons and bundle objects.)
 */
export function findBase64Error(text: string): number | undefined {
  if (isPlainBase64(text)) return undefined;
  /** Characters of the current group of four. */
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (isLineBreak(code)) continue;
    if (code === padding) return findPaddingError(text, i, count);
    if (!isBase64Digit(code)) return i;
    count = (count + 1) % 4;
  }
  return count === 0 ? undefined : text.length - count;
}

/** Returns the offset of an error at or after the first padding, before which a group has `count` characters. */
function findPaddingError(text: string, first: number, count: number): number | undefined {
  if (count < 2) return first;
  let next = skipLineBreaks(text, first + 1);
  if (count === 2) {
    if (next === text.length) return next;
    if (text.charCodeAt(next) !== padding) return next - 1;
    next = skipLineBreaks(text, next + 1);
  }
  return next < text.length ? next : undefined;
}

function skipLineBreaks(text: string, from: number): number {
  let position = from;
  while (position < text.length && isLineBreak(text.charCodeAt(position))) position++;
  return position;
}

const padding = 0x3d;

function isLineBreak(code: number): boolean {
  return code === 0x0a || code === 0x0d;
}

function isBase64Digit(code: number): boolean {
  return (
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x61 && code <= 0x7a) ||
    (code >= 0x30 && code <= 0x39) ||
    code === 0x2b ||
    code === 0x2f
  );
}

/**
 * Reports whether text is padded base64 without line breaks. The decoder skips invalid characters, so a shorter result shows
 * that some were skipped. It also accepts the URL alphabet, which is invalid here, and reads the low byte of characters only.
 */
export function isPlainBase64(text: string): boolean {
  if (text.length % 4 !== 0 || text.includes('-') || text.includes('_')) return false;
  if (/[\u0100-\uffff]/.test(text)) return false;
  const end = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const size = (text.length / 4) * 3 - end;
  if (size > scratch.length) {
    if (size > maxScratch) return Buffer.from(text, 'base64').length === size;
    scratch = Buffer.allocUnsafeSlow(Math.min(size * 2, maxScratch));
  }
  return scratch.write(text, 'base64') === size;
}

const maxScratch = 8 * 1024 * 1024;
/** Receives decoded bytes, of which only the length is used. */
let scratch = Buffer.allocUnsafeSlow(64 * 1024);
