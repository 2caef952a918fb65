const shortEscapes: Readonly<Record<string, string>> = {
  '\x07': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '\\': '\\\\',
  '"': '\\"',
};

/** Quotes text as Go's `%q` does: everything but printable characters is escaped. */
export function quoteGo(text: string): string {
  return `"${text.replace(/["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, escapeCharacter)}"`;
}

/** Returns a name for a line of text: as it is, or quoted where it is not printable ASCII. */
export function quoteIfNeeded(name: string): string {
  return /^[\x20-\x7e]+$/.test(name) ? name : quoteGo(name);
}

function escapeCharacter(character: string): string {
  const short = shortEscapes[character];
  if (short !== undefined) return short;
  const code = character.codePointAt(0) as number;
  if (code < 0x20 || code === 0x7f) return `\\x${code.toString(16).padStart(2, '0')}`;
  // A lone surrogate stands for bytes that were not UTF-8.
  if (code >= 0xd800 && code <= 0xdfff) return '\ufffd';
  return code < 0x10000
    ? `\\u${code.toString(16).padStart(4, '0')}`
    : `\\U${code.toString(16).padStart(8, '0')}`;
}
