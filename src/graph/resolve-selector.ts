import { invalidValue } from '../core/errors.js';

/** Reports whether labels match. */
type LabelSelector = (labels: Readonly<Record<string, string>>) => boolean;

/** Name or value of a label; a name has up to 253 characters of prefix, `/`, and 63. */
const word = '[A-Za-z0-9](?:[-A-Za-z0-9_./]{0,317}[A-Za-z0-9])?';
const requirement = new RegExp(
  `^(?:(!)\\s*(${word})|(${word})(?:\\s*(==?|!=)\\s*(${word}|)|\\s+(in|notin)\\s*\\(([^()]*)\\))?)$`,
);

/**
 * Parses a label selector as kubectl does: `k=v`, `k!=v`, `k in (a, b)`, `k notin (a)`, `k`, `!k`, joined by `,`, all
 * of which must match. Throws OpmateError USAGE.
 */
export function parseLabelSelector(text: string): LabelSelector {
  const tests = splitRequirements(text)
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(parseRequirement);
  return (labels) => tests.every((test) => test(labels));
}

/** Splits at commas outside of parentheses. */
function splitRequirements(text: string): string[] {
  const parts: string[] = [];
  let isInList = false;
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '(') isInList = true;
    else if (text[i] === ')') isInList = false;
    else if (text[i] === ',' && !isInList) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  return [...parts, text.slice(start)];
}

function parseRequirement(text: string): LabelSelector {
  const match = requirement.exec(text);
  if (match === null) {
    throw invalidValue('options.selector', text, 'invalid requirement', {
      hint: 'use KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY or !KEY',
    });
  }
  const [, , absent, key = '', comparison, value = '', membership, list = ''] = match;
  const findValue = (labels: Readonly<Record<string, string>>, name: string): string | undefined =>
    Object.hasOwn(labels, name) ? labels[name] : undefined;
  if (absent !== undefined) return (labels) => findValue(labels, absent) === undefined;
  if (comparison === '!=') return (labels) => findValue(labels, key) !== value;
  if (comparison !== undefined) return (labels) => findValue(labels, key) === value;
  if (membership === undefined) return (labels) => findValue(labels, key) !== undefined;
  const values = list.split(',').map((item) => item.trim());
  const isIn: LabelSelector = (labels) => {
    const actual = findValue(labels, key);
    return actual !== undefined && values.includes(actual);
  };
  return membership === 'in' ? isIn : (labels) => !isIn(labels);
}
