import { OpmateError } from '../core/errors.js';
import { matchGlob } from '../core/text/glob.js';
import { quoteGo } from '../core/go-json-quote.js';
import type { ChartFiles } from './chart.js';

interface Rule {
  pattern: string;
  isNegated: boolean;
  directoriesOnly: boolean;
  /** Compare with the whole path instead of its last part. */
  isWhole: boolean;
}

const maxRules = 1000;

/**
 * Returns the files of a chart directory that its `.helmignore` does not exclude. Throws OpmateError for `**`, as
 * Helm does. (Source: Helm 3, ignore.Rules.)
 */
export function withoutIgnored(files: ChartFiles, label: string): ChartFiles {
  const text = files.get('.helmignore')?.toString() ?? '';
  const rules = [...readRules(text, label), ...readRules('templates/.?*', label)];
  const ignored = new Map<string, boolean>();
  const isIgnored = (path: string, isDirectory: boolean): boolean => {
    const known = ignored.get(path);
    if (known !== undefined) return known;
    const parent = path.slice(0, Math.max(0, path.lastIndexOf('/')));
    const result = (parent !== '' && isIgnored(parent, true)) || matches(rules, path, isDirectory);
    ignored.set(path, result);
    return result;
  };
  return new Map([...files].filter(([path]) => !isIgnored(path, false)));
}

/** Reports whether a rule matches; a negated one ignores what it does not match. */
function matches(rules: readonly Rule[], path: string, isDirectory: boolean): boolean {
  const base = path.slice(path.lastIndexOf('/') + 1);
  return rules.some(({ pattern, isNegated, directoriesOnly, isWhole }) => {
    const isMatch = matchGlob(pattern, isWhole ? path : base) && (isDirectory || !directoriesOnly);
    return isMatch !== isNegated;
  });
}

function readRules(text: string, label: string): Rule[] {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'));
  if (lines.length > maxRules)
    throw new OpmateError('LIMIT', `${label}: .helmignore: more than ${maxRules} rules`);
  return lines.map((line) => {
    if (line.includes('**'))
      throw new OpmateError('UNSUPPORTED', `${label}: .helmignore: ${quoteGo(line)}: ** is not supported`);
    const isNegated = line.startsWith('!');
    const plain = isNegated ? line.slice(1) : line;
    const directoriesOnly = plain.endsWith('/');
    const name = directoriesOnly ? plain.slice(0, -1) : plain;
    const isWhole = name.includes('/');
    return { isNegated, directoriesOnly, isWhole, pattern: name.replace(/^\//, '') };
  });
}
