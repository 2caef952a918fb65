/** Styles of text as go-yaml 2 chooses them. */
import { isWellFormed, mayResolve, resolveScalar } from './scalar.js';

/** Style of a text: unquoted, in quotes, or as a literal block. */
export type YamlTextStyle = 'plain' | 'single' | 'double' | 'literal';

/**
 * Returns the style in which go-yaml 2 writes a text with paired surrogates: literal for several lines, double quotes
 * for what reads as another type or has characters to escape, single quotes for indicators.
 */
export function chooseStyle(text: string): YamlTextStyle {
  if (text.includes('\n')) return BLOCK_FAULT.test(text) ? 'double' : 'literal';
  if (text === '' || (mayResolve(text.charCodeAt(0)) && resolves(text))) return 'double';
  if (QUICK_PLAIN.test(text) && !text.endsWith(':') && !text.includes(': ')) return 'plain';
  // Other styles lose a space before or after a break.
  if (SPECIAL.test(text) || / [\u2028\u2029]|[\u2028\u2029] /.test(text)) return 'double';
  return INDICATOR.test(text) ? 'single' : 'plain';
}

/** Replaces lone surrogates by U+FFFD. */
export function toWellFormed(text: string): string {
  return isWellFormed(text) ? text : text.replace(/\p{Surrogate}/gu, '\ufffd');
}

/** Characters that rule out a literal block. */
const BLOCK_FAULT = / $| [\n\u2028\u2029]|[^\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;
const QUICK_PLAIN = /^[A-Za-z0-9_/$(^<=;\\+~][!-~]*(?: [!"$-~][!-~]*)*$/;
const SPECIAL = /[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;
/** Text without `\n` that reads as something else without quotes. */
const INDICATOR =
  /^(?:[#,[\]{}&*!|>'"%@`]|---|\.\.\.|[-?:](?: |$))|:(?: |$)|[ \u2028\u2029]#|^ | $|[\u2028\u2029]/;
const BASE60 = /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/;

/** Reports whether unquoted text would read as another type, now or by older readers. */
function resolves(text: string): boolean {
  return resolveScalar(text).type !== 'str' || BASE60.test(text);
}
