import { maxNameLength } from '../../core/reference.js';

const component = '[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*';
const namePattern = new RegExp(`^${component}(?:/${component})*$`);

/** Reports whether a text is a repository name. (Source: distribution specification.) */
export function isRepositoryName(text: string): boolean {
  return text.length <= maxNameLength && namePattern.test(text);
}

/** Reports whether a text is a tag. (Source: distribution specification.) */
export function isTag(text: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/.test(text);
}

/** Returns a valid repository name for a directory: `My Layout` becomes `my-layout`. */
export function toRepositoryName(text: string): string {
  const lower = text.toLowerCase();
  if (isRepositoryName(lower)) return lower;
  const words = lower.split(/[^a-z0-9]+/).filter((word) => word !== '');
  return words.join('-').slice(0, 128).replace(/-$/, '') || 'layout';
}
