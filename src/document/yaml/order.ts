/**
 * Compares two keys in the order of go-yaml 2: letters by code point after everything else, runs of digits as
 * numbers, other characters by code point.
 */
function compareYamlKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  let i = 0;
  while (i < length && a.charCodeAt(i) === b.charCodeAt(i)) i++;
  if (i === length) return a.length - b.length;
  if (i > 0 && isHighSurrogate(a.charCodeAt(i - 1))) i--;
  const x = a.codePointAt(i) as number;
  const y = b.codePointAt(i) as number;
  const xLetter = isLetter(x);
  const yLetter = isLetter(y);
  if (xLetter !== yLetter) return yLetter ? -1 : 1;
  if (xLetter || !(isDigit(x) || isDigit(y))) return x - y;
  // A zero inside a number has its own value.
  const inNumber = (x === 0x30 || y === 0x30) && followsNonZero(a, i);
  const xRun = digitRun(a, i, inNumber);
  const yRun = digitRun(b, i, inNumber);
  if (xRun.value !== yRun.value) return xRun.value < yRun.value ? -1 : 1;
  return xRun.length !== yRun.length ? xRun.length - yRun.length : x - y;
}

/** Returns the keys of an object in the order of `compareYamlKeys`. */
export function sortedYamlKeys(object: object): string[] {
  const keys = Object.keys(object);
  for (let i = 1; i < keys.length; i++) {
    if (compareYamlKeys(keys[i - 1] as string, keys[i] as string) > 0) return keys.sort(compareYamlKeys);
  }
  return keys;
}

function followsNonZero(text: string, end: number): boolean {
  const before = Array.from(text.slice(0, end));
  for (let i = before.length - 1; i >= 0; i--) {
    const code = (before[i] as string).codePointAt(0) as number;
    if (!isDigit(code)) return false;
    if (code !== 0x30) return true;
  }
  return false;
}

function digitRun(text: string, start: number, inNumber: boolean): { value: bigint; length: number } {
  let value = inNumber ? 1n : 0n;
  let length = 0;
  for (const char of text.slice(start)) {
    const code = char.codePointAt(0) as number;
    if (!isDigit(code)) break;
    // 64 bits, with overflow.
    value = BigInt.asIntN(64, value * 10n + BigInt(code - 0x30));
    length++;
  }
  return { value, length };
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

function isLetter(code: number): boolean {
  if (code < 0x80) return (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a);
  return /\p{L}/u.test(String.fromCodePoint(code));
}

function isDigit(code: number): boolean {
  if (code < 0x80) return code >= 0x30 && code <= 0x39;
  return /\p{Nd}/u.test(String.fromCodePoint(code));
}
