import { throwFileError } from '../core/errors.js';
import { matchGlob } from '../core/text/glob.js';
import { readRegularFile } from '../files/read-file.js';

/**
 * Rules of `.indexignore` files: gitignore syntax as go-git implements it, which `opm` uses. Differences from git:
 * rules apply to files only, so that `!` can include a file of an ignored directory, a rule with a slash also matches
 * everything below, and a trailing `/**` the file before it.
 */

/** Name of the ignore files, which are never read as catalog files. */
export const ignoreFileName = '.indexignore';

const maxIgnoreFileSize = 1024 * 1024;

interface IgnoreRule {
  /** Directory of the `.indexignore` file, as path components from the catalog root. */
  domain: string[];
  include: boolean;
  directoryOnly: boolean;
  /** Components of a rule with a slash; other rules have one component and `anywhere`. */
  parts: string[];
  anywhere: boolean;
}

/** Evaluates which files of a catalog are ignored. */
export class IgnoreRules {
  readonly #rules: IgnoreRule[] = [];

  /**
   * Adds the rules of one file, named `label` in messages; the last matching rule decides. Throws OpmateError
   * NOT_FOUND or IO for an unreadable file, LIMIT beyond 1 MiB.
   */
  async addFile(file: string, label: string, domain: string[]): Promise<void> {
    const content = await readRegularFile(file, maxIgnoreFileSize, { name: label }).catch(
      throwFileError(label, { file: label }),
    );
    for (const line of content.toString('utf8').split('\n')) {
      const rule = parseRule(line.trim(), domain);
      if (rule !== undefined) this.#rules.push(rule);
    }
  }

  /** Reports whether the file at these path components from the catalog root is ignored. */
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
  const parts = anywhere ? [pattern] : pattern.split('/');
  return { domain, include, directoryOnly, parts, anywhere };
}

function matches(rule: IgnoreRule, components: string[]): boolean {
  if (components.length <= rule.domain.length) return false;
  if (rule.domain.some((part, i) => components[i] !== part)) return false;
  const rest = components.slice(rule.domain.length);
  return rule.anywhere ? matchesName(rule, rest) : matchesPath(rule, rest);
}

function matchesName(rule: IgnoreRule, rest: string[]): boolean {
  // The last component is the file itself, which a directory rule does not match.
  const last = rule.directoryOnly ? rest.length - 1 : rest.length;
  for (let i = 0; i < last; i++) {
    if (matchGlob(rule.parts[0] as string, rest[i] as string)) return true;
  }
  return false;
}

/** Follows the parts of a rule along a path. A `**` at the end matches the path before it too. */
function matchesPath({ parts, directoryOnly }: IgnoreRule, rest: string[]): boolean {
  let position = 0;
  let matched = false;
  let skipping = false;
  for (const [index, part] of parts.entries()) {
    if (part === '**' && index === parts.length - 1) break;
    if (part === '' || part === '**') {
      skipping = part === '**';
      continue;
    }
    if (part.includes('**') || position >= rest.length) return false;
    matched = matchGlob(part, rest[position++] as string);
    while (skipping && !matched && position < rest.length) {
      matched = matchGlob(part, rest[position++] as string);
    }
    if (!matched) return false;
    skipping = false;
  }
  return matched && !(directoryOnly && position >= rest.length);
}
