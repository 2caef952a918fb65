/**
 * Returns the offset of the first character that makes text invalid as standard padded base64, undefined for valid
 * text. Line breaks are allowed anywhere. (Source: Go's base64.StdEncoding, which decodes catalog icons and bundle
 * objects.)
 */
export function findBase64Error(text: string): number | undefined {
  if (text.length % 4 === 0 && isCleanBase64(text)) return undefined;
  let count = 0;
  let padding = 0;
  let end = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x0a || code === 0x0d) continue;
    if (code === 0x3d) {
      padding++;
      if (count % 4 < 2 || padding > 4 - (count % 4)) return i;
      end = i + 1;
      continue;
    }
    if (padding > 0) return (count + padding) % 4 === 0 ? i : end;
    const known =
      (code >= 0x41 && code <= 0x5a) ||
      (code >= 0x61 && code <= 0x7a) ||
      (code >= 0x30 && code <= 0x39) ||
      code === 0x2b ||
      code === 0x2f;
    if (!known) return i;
    count++;
    end = i + 1;
  }
  return (count + padding) % 4 === 0 ? undefined : end;
}

/**
 * The decoder skips invalid characters, so a shorter result shows that some were skipped. It also accepts the URL
 * alphabet, which is invalid here.
 */
function isCleanBase64(text: string): boolean {
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  if (text.includes('-') || text.includes('_')) return false;
  const size = (text.length / 4) * 3 - padding;
  if (size > scratch.length) {
    if (size > maxScratch) return Buffer.from(text, 'base64').length === size;
    scratch = Buffer.allocUnsafeSlow(Math.min(size * 2, maxScratch));
  }
  return scratch.write(text, 'base64') === size;
}

const maxScratch = 8 * 1024 * 1024;
/** Receives decoded bytes, of which only the length is used. */
let scratch = Buffer.allocUnsafeSlow(64 * 1024);
