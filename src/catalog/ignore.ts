import { fileError } from '../core/errors.js';
import { readRegularFile } from '../files/read-file.js';

/**
 * The rules of `.indexignore` files: gitignore's notation with the meaning that go-git gives it, which is
 * what `opm` uses. Differences from git: rules are tried on files only, so `!` can bring back a file below
 * an ignored directory, and a rule with a slash also hits everything below what it names.
 */

/** Name of the files that hold the rules; they are never read as catalog files. */
export const ignoreFileName = '.indexignore';

const maxIgnoreFileSize = 1024 * 1024;

interface IgnoreRule {
  /** Directory of the `.indexignore` file, as path components below the catalog root. */
  domain: string[];
  include: boolean;
  directoryOnly: boolean;
  /** Components of a rule with a slash; a rule without one has a single component and `anywhere`. */
  parts: string[];
  anywhere: boolean;
}

/** Decides which files of a catalog are left out. */
export class IgnoreRules {
  readonly #rules: IgnoreRule[] = [];

  /**
   * Adds the rules of one file, which messages call `label`; of two rules that hit, the one added later
   * decides. Throws OpmateError NOT_FOUND or IO when it cannot be read, LIMIT beyond 1 MiB.
   */
  async addFile(file: string, label: string, domain: string[]): Promise<void> {
    const content = await readRegularFile(file, maxIgnoreFileSize, {
      name: label,
      label: `open ${label}`,
    }).catch((error: unknown) => {
      throw fileError(`open ${label}`, error, { file: label });
    });
    for (const line of content.toString('utf8').split('\n')) {
      const rule = parseRule(line.trim(), domain);
      if (rule !== undefined) this.#rules.push(rule);
    }
  }

  /** Whether the file at these path components, counted from the catalog root, is left out. */
  ignores(components: string[]): boolean {
    for (let i = this.#rules.length - 1; i >= 0; i--) {
      const rule = this.#rules[i] as IgnoreRule;
      if (matches(rule, components)) return !rule.include;
    }
    return false;
  }
}

function parseRule(line: string, domain: string[]): IgnoreRule | undefined {
  if (line === '' || line.startsWith('#')) return undefined;
  const include = line.startsWith('!');
  let pattern = include ? line.slice(1) : line;
  const directoryOnly = pattern.endsWith('/');
  if (directoryOnly) pattern = pattern.slice(0, -1);
  const anywhere = !pattern.includes('/');
  const parts = anywhere ? [pattern] : pattern.split('/').filter((part) => part !== '');
  return { domain, include, directoryOnly, parts, anywhere };
}

function matches(rule: IgnoreRule, components: string[]): boolean {
  if (components.length <= rule.domain.length) return false;
  if (rule.domain.some((part, i) => components[i] !== part)) return false;
  const rest = components.slice(rule.domain.length);
  return rule.anywhere ? matchesName(rule, rest) : matchesPath(rule, rest);
}

function matchesName(rule: IgnoreRule, rest: string[]): boolean {
  // The last component is the file itself, which a rule for directories does not hit.
  const last = rule.directoryOnly ? rest.length - 1 : rest.length;
  for (let i = 0; i < last; i++) {
    if (matchGlob(rule.parts[0] as string, rest[i] as string)) return true;
  }
  return false;
}

function matchesPath(rule: IgnoreRule, rest: string[]): boolean {
  let position = 0;
  let matched = false;
  let skipping = false;
  for (const part of rule.parts) {
    if (position >= rest.length) return false;
    if (part === '**') {
      skipping = true;
      continue;
    }
    if (part.includes('**')) return false;
    if (skipping) {
      skipping = false;
      matched = false;
      while (position < rest.length) {
        if (matchGlob(part, rest[position++] as string)) {
          matched = true;
          break;
        }
      }
      if (!matched) return false;
    } else {
      if (!matchGlob(part, rest[position++] as string)) return false;
      matched = true;
    }
  }
  return matched && !(rule.directoryOnly && position >= rest.length);
}

/** Shell pattern matching of one path component: `*`, `?`, `[a-z]`, `[^a]` and `\`. Linear in both. */
function matchGlob(pattern: string, name: string): boolean {
  let p = 0;
  let n = 0;
  let starAt = -1;
  let starName = 0;
  while (n < name.length) {
    const step = p < pattern.length ? matchOne(pattern, p, name[n] as string) : undefined;
    if (step === 'star') {
      starAt = p++;
      starName = n;
    } else if (step !== undefined) {
      p = step;
      n++;
    } else if (starAt >= 0) {
      p = starAt + 1;
      n = ++starName;
    } else {
      return false;
    }
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}

/** Pattern offset after matching one character, `star` at a `*`, undefined when it does not match. */
function matchOne(pattern: string, position: number, character: string): number | 'star' | undefined {
  const token = pattern[position];
  if (token === '*') return 'star';
  if (token === '?') return position + 1;
  if (token === '\\') return pattern[position + 1] === character ? position + 2 : undefined;
  if (token !== '[') return token === character ? position + 1 : undefined;
  let i = position + 1;
  const negated = pattern[i] === '^';
  if (negated) i++;
  let hit = false;
  let first = true;
  for (;;) {
    if (i >= pattern.length) return undefined;
    if (pattern[i] === ']' && !first) break;
    first = false;
    const low = pattern[i] === '\\' ? pattern[++i] : pattern[i];
    i++;
    let high = low;
    if (pattern[i] === '-' && pattern[i + 1] !== ']') {
      i++;
      high = pattern[i] === '\\' ? pattern[++i] : pattern[i];
      i++;
    }
    if (low !== undefined && high !== undefined && low <= character && character <= high) hit = true;
  }
  return hit === negated ? undefined : i + 1;
}
