/**
 * Control characters, and those that are not seen but change the order or place of others: bidirectional controls,
 * line separators, zero-width spaces, tags. Joiners stay, for words and emoji are written with them.
 */
const unsafe =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/**
 * Makes text from elsewhere fit to be shown on a terminal: what could rewrite it, or make text read otherwise than it is,
 * becomes `\xNN`, `\uNNNN` or `\UNNNNNNNN`. Tabs and line feeds stay.
 */
export function printable(text: string): string {
  return text.replace(unsafe, (character) =>
    character === '\t' || character === '\n' ? character : escapeCharacter(character),
  );
}

/** The same for one line or one cell of a table: tabs and line feeds are escaped too. */
export function printableLine(text: string): string {
  return text.replace(unsafe, escapeCharacter);
}

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) as number;
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}
