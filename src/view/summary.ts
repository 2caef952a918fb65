/** Characters of a summary. */
const maxSummary = 180;

/** The first text that says something, without Markdown, on one line, cut at a word. */
export function summarizeText(texts: readonly (string | undefined)[]): string {
  for (const text of texts) {
    const plain = withoutMarkdown(text ?? '');
    if (plain === '') continue;
    if (plain.length <= maxSummary) return plain;
    const cut = plain.slice(0, maxSummary);
    return `${cut.slice(0, Math.max(cut.lastIndexOf(' '), maxSummary - 40))}…`;
  }
  return '';
}

function withoutMarkdown(text: string): string {
  return text
    .slice(0, 8 * maxSummary)
    .split('\n')
    .filter((line) => !/^\s*(#|[-=*_]{3,}\s*$|```|\|)/.test(line))
    .join(' ')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[*_`]{1,3}([^*_`]+)[*_`]{1,3}/g, '$1')
    .replace(/\s+/g, ' ')
    .trim();
}
