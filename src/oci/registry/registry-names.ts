/** Longest repository name: what clients that count the registry's name in allow at most. */
const maxNameLength = 255;
const component = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const namePattern = new RegExp(`^${component}(?:/${component})*$`);

/** Whether a text is a repository name by the grammar of the distribution specification. */
export function isRepositoryName(text: string): boolean {
  return text.length <= maxNameLength && namePattern.test(text);
}

/** Whether a text is a tag by the grammar of the distribution specification. */
export function isTag(text: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/.test(text);
}

/** The repository name for a directory: its own, made to fit the grammar; `My Layout` becomes `my-layout`. */
export function toRepositoryName(text: string): string {
  const lower = text.toLowerCase();
  if (isRepositoryName(lower)) return lower;
  const parts = lower.split(/[^a-z0-9]+/);
  return (
    parts
      .filter((part) => part !== '')
      .join('-')
      .slice(0, 128)
      .replace(/-$/, '') || 'layout'
  );
}
