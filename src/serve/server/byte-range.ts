/** First and last byte, both included. */
interface ByteRange {
  start: number;
  end: number;
}

/**
 * Reads a `Range` header (RFC 9110, section 14): the one range of a content of `size` bytes, `reversed` where its end is
 * before its start, `unsatisfiable` where it has no byte of the content. Undefined for several ranges at once, other units
 * and what does not parse, which may be answered with the whole.
 */
export function parseByteRange(
  header: string | undefined,
  size: number,
): ByteRange | 'reversed' | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header?.trim() ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first !== '' && last !== '' && Number(first) > Number(last)) return 'reversed';
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  return start > end ? 'unsatisfiable' : { start, end };
}
