/**
 * Control characters and invisible characters that reorder or hide others: bidirectional controls, line separators,
 * zero-width spaces, tags. Joiners are safe: words and emoji need them.
 */
const unsafe =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/**
 * Escapes untrusted text for a terminal: control and invisible characters become `\xNN`, `\uNNNN` or `\UNNNNNNNN`.
 * Tabs and line feeds stay.
 */
export function printable(text: string): string {
  return text.replace(unsafe, (character) =>
    character === '\t' || character === '\n' ? character : escapeCharacter(character),
  );
}

/** Returns a number with its noun: `1 image`, `2 repositories`. */
export function count(number: number, noun: string): string {
  return `${number} ${number === 1 ? noun : noun.replace(/y$/, 'ie').concat('s')}`;
}

const byteUnits = ['KiB', 'MiB', 'GiB', 'TiB'] as const;

/** Returns a size in powers of 1024: `700 bytes`, `1.5 KiB`, `12 GiB`. */
export function amountOfBytes(bytes: number): string {
  if (bytes < 1024) return count(bytes, 'byte');
  let amount = bytes / 1024;
  let unit = 0;
  for (; amount >= 999.5 && unit < byteUnits.length - 1; unit++) amount /= 1024;
  return `${amount < 9.95 ? amount.toFixed(1) : amount.toFixed(0)} ${byteUnits[unit]}`;
}

/** Escapes untrusted text for one line or table cell: as `printable`, tabs and line feeds included. */
export function printableLine(text: string): string {
  return text.replace(unsafe, escapeCharacter);
}

/**
 * Escapes the non-ASCII characters that `printable` does as JSON and quoted YAML do, so that data stays data. Both escape
 * control characters of ASCII themselves, and colors of opmate consist of them.
 */
export function printableData(text: string): string {
  return text.replace(unsafe, (character) =>
    character < '\u0080'
      ? character
      : character
          .split('')
          .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
          .join(''),
  );
}

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) as number;
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}

/** Quotes a text as one word of a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
