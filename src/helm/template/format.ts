import { quoteGo } from '../../core/go-json-quote.js';
import { formatGoFloat } from '../../document/go-float.js';
import {
  type GoValue,
  GoStruct,
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
      let fault = '';
      const amount = (written: string | undefined, name: string): number | undefined => {
        if (written === undefined) return undefined;
        const value = written === '*' ? take() : BigInt(written || 0);
        if (typeof value !== 'bigint') fault += `%!(BAD${name})`;
        else return Math.min(Math.abs(Number(value)), maxWidth);
        return undefined;
      };
      const directive: Directive = {
        flags,
        width: amount(width, 'WIDTH'),
        precision: amount(precision, 'PREC'),
        verb,
      };
      if (verb === '%') return '%';
      if (verb === '') return '%!(NOVERB)';
      if (where !== undefined) next = Number(where) - 1;
      if (next < 0 || (where !== undefined && isMissing())) return `%!${verb}(BADINDEX)`;
      if (isMissing()) return `${fault}%!${verb}(MISSING)`;
      const made = fault + formatArgument(directive, take() as GoValue);
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

function pad(text: string, { flags, width = 0, precision }: Directive, value: GoValue): string {
  const missing = width - [...text].length;
  if (missing <= 0) return text;
  if (flags.includes('-')) return text + ' '.repeat(missing);
  const isZero = flags.includes('0') && (typeof value !== 'bigint' || precision === undefined);
  const sign = isZero && isNumber(value) ? (/^[-+ ]/.exec(text)?.[0] ?? '') : '';
  return sign + (isZero ? '0' : ' ').repeat(missing) + text.slice(sign.length);
}

function formatArgument(directive: Directive, value: GoValue): string {
  const { verb, flags } = directive;
  if (verb === 'T') return formatPart({ ...directive, verb: 's' }, getType(value));
  if (value === null) return verb === 'v' ? pad('<nil>', directive, value) : `%!${verb}(<nil>)`;
  if (verb === 'w') return mismatch(directive, value);
  if (verb !== 'v') return formatPart(directive, value);
  if (flags.includes('#')) return goSyntax(value);
  return formatPart({ ...directive, flags: flags.replaceAll('+', '') }, value);
}

/** Formats a value; width and precision apply to the parts of lists and maps. */
function formatPart(directive: Directive, value: GoValue): string {
  const { verb, flags, precision } = directive;
  if (value === null) return '<nil>';
  if (Array.isArray(value)) return `[${value.map((item) => formatPart(directive, item)).join(' ')}]`;
  if (isGoMap(value))
    return `map[${getKeys(value)
      .map((key) => `${formatPart(directive, key)}:${formatPart(directive, value[key] as GoValue)}`)
      .join(' ')}]`;
  if (value instanceof GoStruct) return print(value);
  let made: string | undefined;
  if (typeof value === 'string') made = formatText(verb, value, precision, flags);
  else if (typeof value === 'boolean') made = 'tv'.includes(verb) ? String(value) : undefined;
  else if (typeof value === 'bigint') made = formatInt(verb, value, precision, flags);
  else made = formatNumber(verb, value, precision, flags);
  return made === undefined ? mismatch(directive, value) : pad(made, directive, value);
}

/** Returns a value whose type does not fit the verb, as Go prints it. */
function mismatch(directive: Directive, value: GoValue): string {
  return `%!${directive.verb}(${getType(value)}=${formatPart({ ...directive, verb: 'v' }, value)})`;
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
  if (verb === 's' || verb === 'v') return cut;
  if (verb === 'q') return flags.includes('#') && !/[`\p{Cc}]/u.test(cut) ? `\`${cut}\`` : quoteGo(cut);
  if (verb !== 'x' && verb !== 'X') return undefined;
  const bytes = [...Buffer.from(cut)].map((byte) => byte.toString(16).padStart(2, '0'));
  const hex = bytes.join(flags.includes(' ') ? ' ' : '');
  return verb === 'x' ? hex : hex.toUpperCase();
}

function formatInt(
  verb: string,
  value: bigint,
  precision: number | undefined,
  flags: string,
): string | undefined {
  const bases: Readonly<Record<string, number>> = { d: 10, v: 10, b: 2, o: 8, O: 8, x: 16, X: 16 };
  const base = bases[verb];
  if (base !== undefined) {
    const alternate: Readonly<Record<number, string>> = { 2: '0b', 8: '0', 16: `0${verb}` };
    const prefix = verb === 'O' ? '0o' : flags.includes('#') ? (alternate[base] ?? '') : '';
    const digits = (value < 0n ? -value : value).toString(base).padStart(precision ?? 1, '0');
    const text = `${value < 0n ? '-' : ''}${prefix}${verb === 'X' ? digits.toUpperCase() : digits}`;
    return signed(text, value, flags);
  }
  if (verb === 'c' || verb === 'q' || verb === 'U') {
    const code = value >= 0n && value <= 0x10ffffn ? Number(value) : 0xfffd;
    if (verb === 'U') return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
    return verb === 'c'
      ? String.fromCodePoint(code)
      : `'${quoteGo(String.fromCodePoint(code)).slice(1, -1)}'`;
  }
  return undefined;
}

function formatNumber(
  verb: string,
  value: number,
  precision: number | undefined,
  flags: string,
): string | undefined {
  const digits = Math.min(precision ?? 6, 99);
  let text: string;
  if (verb === 'f' || verb === 'F') text = toFixed(value, digits);
  else if (verb === 'e' || verb === 'E') text = value.toExponential(digits).replace(/e([+-])(\d)$/, 'e$10$2');
  else if (verb !== 'g' && verb !== 'G' && verb !== 'v') return undefined;
  else if (precision === undefined) text = formatGoFloat(value);
  else text = formatGoFloat(Number(value.toPrecision(digits || 1)), digits || 1);
  return signed('EG'.includes(verb) ? text.toUpperCase() : text, value, flags);
}

/** Returns a number with decimal places, ties rounded to even digits. */
function toFixed(value: number, digits: number): string {
  if (!Number.isFinite(value)) return formatGoFloat(value);
  if (Math.abs(value) >= 1e21) return `${BigInt(value)}${digits > 0 ? '.' : ''}${'0'.repeat(digits)}`;
  // A number that is whole in half units of the last place has all its digits here.
  const exact = Number.isInteger(value * 2 ** (digits + 1)) ? value.toFixed(digits + 1) : '';
  return /[02468]\.?5$/.test(exact) ? exact.replace(/\.?5$/, '') : value.toFixed(digits);
}

function goSyntax(value: GoValue): string {
  const inner = (item: GoValue): string => (item === null ? 'interface {}(nil)' : goSyntax(item));
  if (typeof value === 'string') return quoteGo(value);
  if (Array.isArray(value)) return `[]interface {}{${value.map(inner).join(', ')}}`;
  if (isGoMap(value))
    return `map[string]interface {}{${getKeys(value)
      .map((key) => `${quoteGo(key)}:${inner(value[key] as GoValue)}`)
      .join(', ')}}`;
  return print(value);
}
