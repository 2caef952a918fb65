/**
 * Parses a `Range` header (RFC 9110, section 14) for a content of `size` bytes. Returns its first and last byte; `reversed`
 * if its end is before its start, `unsatisfiable` if it is beyond the content. Undefined, for the whole content, for
 * several ranges, other units and invalid headers.
 */
export function parseByteRange(
  header: string | undefined,
  size: number,
): { start: number; end: number } | 'reversed' | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header?.trim() ?? '') ?? [];
  if (first === '' && last === '') return undefined;
  if (first !== '' && last !== '' && Number(first) > Number(last)) return 'reversed';
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  return start > end ? 'unsatisfiable' : { start, end };
}
