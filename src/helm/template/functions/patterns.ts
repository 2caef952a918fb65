import { getMessage } from '../../../core/errors.js';
import { compileGoPattern } from '../../../kube/go-pattern.js';
import { evaluationFault } from '../fault.js';
import type { Budget } from '../budget.js';
import { type FunctionTable, define, withMust } from './define.js';

/** Translates a Go RE2 pattern. Catastrophic backtracking ends at the time limit of a rendering. */
export function compilePattern(pattern: string, flags = ''): RegExp {
  try {
    return compileGoPattern(pattern, flags);
  } catch (error) {
    throw evaluationFault(getMessage(error));
  }
}

/** Yields matches one by one: a million of them would be larger than their text by far. */
function* matches(
  pattern: string,
  text: string,
  count: number,
  budget: Budget,
): Generator<RegExpExecArray, void, undefined> {
  let results = 0;
  let end = -1;
  for (const match of text.matchAll(compilePattern(pattern, 'g'))) {
    if (count >= 0 && results >= count) break;
    budget.countSteps(1);
    // In Go, an empty match does not follow another match directly.
    if (match[0] !== '' || match.index !== end) {
      results++;
      yield match;
    }
    end = match.index + match[0].length;
  }
}

function replaceAll(pattern: string, text: string, template: string, budget: Budget): string {
  return replaceMatches(pattern, text, budget, (match) =>
    template.replace(
      /\$(?:\$|\{(\w+)\}|(\w+))/g,
      (_all, braced: string | undefined, plain: string | undefined) => {
        const name = braced ?? plain;
        if (name === undefined) return '$';
        return (/^\d+$/.test(name) ? match[Number(name)] : match.groups?.[name]) ?? '';
      },
    ),
  );
}

function replaceMatches(
  pattern: string,
  text: string,
  budget: Budget,
  replace: (match: RegExpExecArray) => string,
): string {
  let made = '';
  let from = 0;
  for (const match of matches(pattern, text, -1, budget)) {
    made += text.slice(from, match.index) + replace(match);
    from = match.index + match[0].length;
    budget.requireLength(made.length + text.length);
  }
  return made + text.slice(from);
}

/** Functions with regular expressions. */
export const patternFunctions: FunctionTable = {
  ...withMust({
    regexMatch: define('ss', ([pattern, text]) => compilePattern(pattern).test(text)),
    regexFind: define('ss', ([pattern, text]) => compilePattern(pattern).exec(text)?.[0] ?? ''),
    regexFindAll: define('ssi', ([pattern, text, count], { budget }) => {
      const found: string[] = [];
      for (const [all] of matches(pattern, text, count, budget)) {
        found.push(all);
        if (found.length > budget.limits.maxItems) budget.requireItems(found.length);
      }
      return found;
    }),
    regexReplaceAll: define('sss', ([pattern, text, by], { budget }) =>
      replaceAll(pattern, text, by, budget),
    ),
    regexReplaceAllLiteral: define('sss', ([pattern, text, by], { budget }) =>
      replaceMatches(pattern, text, budget, () => by),
    ),
    regexSplit: define('ssi', ([pattern, text, count], { budget }) => {
      const parts: string[] = [];
      let from = 0;
      for (const match of matches(pattern, text, -1, budget)) {
        if (count > 0 && parts.length === count - 1) break;
        if (match[0] === '' && (match.index === 0 || match.index === text.length)) continue;
        parts.push(text.slice(from, match.index));
        if (parts.length > budget.limits.maxItems) budget.requireItems(parts.length);
        from = match.index + match[0].length;
      }
      return count === 0 ? [] : [...parts, text.slice(from)];
    }),
  }),
  regexQuoteMeta: define('s', ([text]) => text.replace(/[\\.+*?()|[\]{}^$]/g, '\\$&')),
};
