/**
 * Compares two strings by their UTF-8 bytes, as Go does. Differs from the UTF-16 order of `<` for characters beyond
 * U+FFFF only.
 */
export function compareBytes(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) {
      // A surrogate is part of a character beyond U+FFFF, which sorts last.
      const xRank = x >= 0xd800 && x <= 0xdfff ? x + 0x10000 : x;
      const yRank = y >= 0xd800 && y <= 0xdfff ? y + 0x10000 : y;
      return xRank < yRank ? -1 : 1;
    }
  }
  return a.length - b.length;
}

/** Returns a copy sorted in byte order. */
export function sortedByBytes(strings: Iterable<string>): string[] {
  return [...strings].sort(compareBytes);
}
