import { count } from '../core/printable.js';

export { count, printable, printableLine } from '../core/printable.js';

/** Returns a remaining number: `1 more finding`, `4,980 more findings`. */
export function countMore(number: number, noun: string): string {
  return `${number.toLocaleString('en-US')} more ${noun}${number === 1 ? '' : 's'}`;
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

/** Quotes a text as one word of a POSIX shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
