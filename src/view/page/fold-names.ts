/** Maximum names that stay visible. */
const maxShown = 3;
/** Quoted name with the separator before the next one. */
const quotedName = /"(?:[^"\\]|\\.)*"(, (?="))?/g;
/** End of a truncated list, as `listNames` writes it. */
const omission = /^ and (\d+) more$/;

/**
 * Splits a message that ends with a list of quoted names: the text up to the third name, and the number of further
 * names, including those that the message only counts. Returns undefined for other messages.
 */
export function foldNames(message: string): { shown: string; hidden: number } | undefined {
  const ends: number[] = [];
  let isOpen = false;
  for (const match of message.matchAll(quotedName)) {
    if (!isOpen) ends.length = 0;
    const separator = match[1] ?? '';
    ends.push(match.index + match[0].length - separator.length);
    isOpen = separator !== '';
  }
  const shownEnd = ends[maxShown - 1];
  const rest = message.slice(ends.at(-1));
  const omitted = omission.exec(rest)?.[1];
  if (shownEnd === undefined || (rest !== '' && omitted === undefined)) return undefined;
  const hidden = ends.length - maxShown + Number(omitted ?? 0);
  return hidden === 0 ? undefined : { shown: message.slice(0, shownEnd), hidden };
}
