import { quoteGo } from '../../core/go-json-quote.js';
import {
  type GoValue,
  GoStruct,
  formatFloat,
  isGoMap,
  isNumber,
  getKeys,
  requireTextLength,
  printValue,
  getType,
} from './go-values.js';

/** Maximum width and precision, as in Go. */
const maxWidth = 10_000;

interface Directive {
  flags: string;
  width: number | undefined;
  precision: number | undefined;
  verb: string;
}

/** Formats like Go's `fmt.Sprintf`, mismatched verbs included. */
export function sprintf(format: string, args: readonly GoValue[]): string {
  let next = 0;
  let length = 0;
  const take = (): GoValue | undefined => (next < args.length ? args[next++] : undefined);
  const isMissing = (): boolean => next >= args.length;
  const text = format.replace(
    /%([-+# 0]*)(\*|\d+)?(?:\.(\*|\d*))?(?:\[(\d+)\])?([\s\S]?)/gu,
    (
      _all,
      flags: string,
      width: string | undefined,
      precision: string | undefined,
      where: string | undefined,
      verb: string,
    ) => {
      const amount = (written: string | undefined): number | undefined => {
        if (written === undefined) return undefined;
        return Math.min(Math.abs(Number(written === '*' ? (take() ?? 0) : written || 0)), maxWidth);
      };
      const directive: Directive = { flags, width: amount(width), precision: amount(precision), verb };
      if (verb === '%') return '%';
      if (verb === '') return '%!(NOVERB)';
      if (where !== undefined) next = Number(where) - 1;
      if (isMissing()) return `%!${verb}(MISSING)`;
      const made = pad(formatOne(directive, take() as GoValue), directive);
      length += made.length;
      requireTextLength(length);
      return made;
    },
  );
  const extra = args.slice(next);
  if (extra.length === 0 || format.includes('%[')) return text;
  return `${text}%!(EXTRA ${extra.map((item) => (item === null ? '<nil>' : `${getType(item)}=${print(item)}`)).join(', ')})`;
}

/** Prints operands like `fmt.Sprint`, with a space between two that are not strings. */
export function sprint(args: readonly GoValue[]): string {
  let text = '';
  for (const [i, arg] of args.entries()) {
    const before = args[i - 1];
    if (i > 0 && typeof arg !== 'string' && typeof before !== 'string') text += ' ';
    text += print(arg);
  }
  return text;
}

export function sprintln(args: readonly GoValue[]): string {
  return `${args.map(print).join(' ')}\n`;
}

function print(value: GoValue): string {
  return value === null ? '<nil>' : printValue(value);
}

function pad(text: string, { flags, width = 0, verb }: Directive): string {
  if ([...text].length >= width) return text;
  if (flags.includes('-')) return text + ' '.repeat(width - [...text].length);
  const isZero = flags.includes('0') && verb !== 'v';
  const fill = (isZero ? '0' : ' ').repeat(width - [...text].length);
  const isSigned = isZero && /^[+-]/.test(text) && verb !== 's' && verb !== 'q';
  return isSigned ? `${text[0]}${fill}${text.slice(1)}` : fill + text;
}

function formatOne(directive: Directive, value: GoValue): string {
  const { verb, flags, precision } = directive;
  if (verb === 'T') return getType(value);
  if (verb === 'v') return flags.includes('#') ? goSyntax(value) : signed(print(value), value, flags);
  if (value === null) return `%!${verb}(<nil>)`;
  if (Array.isArray(value)) return `[${value.map((item) => formatOne(directive, item)).join(' ')}]`;
  if (isGoMap(value))
    return `map[${getKeys(value)
      .map((key) => `${formatOne(directive, key)}:${formatOne(directive, value[key] as GoValue)}`)
      .join(' ')}]`;
  if (value instanceof GoStruct) return print(value);
  const made =
    typeof value === 'string'
      ? formatText(verb, value, precision, flags)
      : typeof value === 'boolean'
        ? verb === 't'
          ? String(value)
          : undefined
        : typeof value === 'bigint'
          ? formatInt(verb, value, flags)
          : formatNumber(verb, value, precision, flags);
  return made ?? `%!${verb}(${getType(value)}=${print(value)})`;
}

function signed(text: string, value: GoValue, flags: string): string {
  if (!isNumber(value) || text.startsWith('-')) return text;
  return flags.includes('+') ? `+${text}` : flags.includes(' ') ? ` ${text}` : text;
}

function formatText(
  verb: string,
  text: string,
  precision: number | undefined,
  flags: string,
): string | undefined {
  const cut = precision === undefined ? text : [...text].slice(0, precision).join('');
  if (verb === 's') return cut;
  if (verb === 'q') return flags.includes('#') && !/[`\p{Cc}]/u.test(cut) ? `\`${cut}\`` : quoteGo(cut);
  if (verb !== 'x' && verb !== 'X') return undefined;
  const hex = Buffer.from(cut).toString('hex');
  return verb === 'x' ? hex : hex.toUpperCase();
}

function formatInt(verb: string, value: bigint, flags: string): string | undefined {
  const bases: Readonly<Record<string, number>> = { d: 10, b: 2, o: 8, O: 8, x: 16, X: 16 };
  const base = bases[verb];
  if (base !== undefined) {
    const alternate: Readonly<Record<number, string>> = { 2: '0b', 8: '0', 16: `0${verb}` };
    const prefix = verb === 'O' ? '0o' : flags.includes('#') ? (alternate[base] ?? '') : '';
    const digits = (value < 0n ? -value : value).toString(base);
    const text = `${value < 0n ? '-' : ''}${prefix}${verb === 'X' ? digits.toUpperCase() : digits}`;
    return signed(text, value, flags);
  }
  if (verb === 'c' || verb === 'q' || verb === 'U') {
    const code = value >= 0n && value <= 0x10ffffn ? Number(value) : 0xfffd;
    if (verb === 'U') return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
    return verb === 'c' ? String.fromCodePoint(code) : `'${String.fromCodePoint(code)}'`;
  }
  return undefined;
}

function formatNumber(
  verb: string,
  value: number,
  precision: number | undefined,
  flags: string,
): string | undefined {
  const digits = Math.min(precision ?? 6, 100);
  const exponent = (text: string): string => text.replace(/e([+-])(\d)$/, 'e$10$2');
  let text: string;
  if (verb === 'f' || verb === 'F') text = value.toFixed(digits);
  else if (verb === 'e' || verb === 'E') text = exponent(value.toExponential(digits));
  else if (verb !== 'g' && verb !== 'G') return undefined;
  else if (precision === undefined) text = formatFloat(value);
  else text = exponent(String(Number(value.toPrecision(Math.max(1, digits)))));
  return signed(verb === 'E' ? text.toUpperCase() : text, value, flags);
}

function goSyntax(value: GoValue): string {
  if (value === null) return '<nil>';
  if (typeof value === 'string') return quoteGo(value);
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(', ')}}`;
  if (isGoMap(value))
    return `map[string]interface {}{${getKeys(value)
      .map((key) => `${quoteGo(key)}:${goSyntax(value[key] as GoValue)}`)
      .join(', ')}}`;
  return print(value);
}
