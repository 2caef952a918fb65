import { printableLine } from './printable.js';

/**
 * Returns rows below a header in columns; the last column is not padded. Control characters are escaped. (Source:
 * text/tabwriter as `opm` calls it; widths count characters.)
 */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  // The header is a row too: some tables have names in it.
  const shown = [header, ...rows].map((row) => row.map(printableLine));
  const widths: number[] = [];
  for (const row of shown) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, countCharacters(cell));
    });
  }
  let out = '';
  for (const row of shown) {
    row.forEach((cell, column) => {
      const last = column === row.length - 1;
      out += last ? `${cell}\n` : cell + ' '.repeat((widths[column] as number) + 2 - countCharacters(cell));
    });
  }
  return out;
}

function countCharacters(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xdc00) count--;
  return count;
}
