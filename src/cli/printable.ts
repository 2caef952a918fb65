export { amountOfBytes, count, printable, printableLine, shellWord } from '../core/printable.js';

/** Returns a remaining number: `1 more finding`, `4,980 more findings`. */
export function countMore(number: number, noun: string): string {
  return `${number.toLocaleString('en-US')} more ${noun}${number === 1 ? '' : 's'}`;
}
