import { OpmateError } from '../core/errors.js';

const classes: Readonly<Record<string, string>> = {
  alnum: 'A-Za-z0-9',
  alpha: 'A-Za-z',
  blank: ' \\t',
  cntrl: '\\x00-\\x1f\\x7f',
  digit: '0-9',
  lower: 'a-z',
  punct: '!-\\/:-@\\[-`{-~',
  space: '\\s',
  upper: 'A-Z',
  word: '\\w',
  xdigit: '0-9A-Fa-f',
};

/**
 * Translates a Go RE2 pattern. Throws OpmateError INVALID. A match may backtrack without end: run it within a time
 * limit.
 */
export function compileGoPattern(pattern: string, flags = ''): RegExp {
  const [, own = '', rest = pattern] = /^\(\?([imsU]+)\)([\s\S]*)$/.exec(pattern) ?? [];
  const source = rest
    .replaceAll('(?P<', '(?<')
    .replace(/\\z/g, '$(?![\\s\\S])')
    .replace(/\\A/g, '^')
    // A bracket that comes first in a class is one of its characters.
    .replace(
      /\\[\s\S]|\[(\^?)(\]?)((?:\[:\w+:\]|\\[\s\S]|[^\]\\])*)\]/g,
      (all, negation: string | undefined, bracket: string, content: string) =>
        negation === undefined ? all : `[${negation}${bracket && '\\]'}${content}]`,
    )
    .replace(/\[:(\w+):\]/g, (all, name: string) => classes[name] ?? all)
    .replace(/\\([pP])([A-Z])/g, '\\$1{$2}');
  try {
    return new RegExp(source, flags + own.replace('U', '') + (/\\[pP]\{/.test(source) ? 'u' : ''));
  } catch {
    throw new OpmateError('INVALID', `error parsing regexp: ${pattern.slice(0, 200)}`);
  }
}
