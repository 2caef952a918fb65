import { isIP } from 'node:net';
import { quoteGo } from '../../document/go-json.js';

/**
 * Returns the fault of a text as one mail address (RFC 5322), in the words of Go's `net/mail`; undefined if valid:
 * `name@example.com`, or `A name <name@example.com>`. Groups are not taken apart.
 */
export function mailAddressFault(text: string): string | undefined {
  try {
    const rest = addressEnd(text);
    return rest === '' ? undefined : `mail: expected single address, got ${quoteGo(rest)}`;
  } catch (error) {
    if (error instanceof MailFault) return error.message;
    throw error;
  }
}

class MailFault extends Error {}

const atomCharacter = /[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.\u0080-\u{10ffff}]/u;
const atomText = new RegExp(`^${atomCharacter.source}+`, 'u');
const printing = /[\x21-\x7e\u0080-\u{10ffff} \t]/u;

/** Returns the text after an address and comments. Throws MailFault. */
function addressEnd(text: string): string {
  let rest = text;

  function take(character: string): boolean {
    if (!rest.startsWith(character)) return false;
    rest = rest.slice(1);
    return true;
  }

  function skipSpaces(): void {
    rest = rest.replace(/^[ \t]+/, '');
  }

  function address(): void {
    skipSpaces();
    if (rest === '') throw new MailFault('mail: no address');
    const begin = rest;
    try {
      localAtDomain();
      skipSpaces();
      return;
    } catch (error) {
      if (!(error instanceof MailFault)) throw error;
      rest = begin;
    }
    const name = rest.startsWith('<') ? '' : phrase();
    skipSpaces();
    if (rest.startsWith(':')) throw new MailFault('mail: empty group');
    if (!take('<')) {
      const isAtom = [...name].every((character) => atomCharacter.test(character));
      throw new MailFault(isAtom ? "mail: missing '@' or angle-addr" : 'mail: no angle-addr');
    }
    localAtDomain();
    if (!take('>')) throw new MailFault('mail: unclosed angle-addr');
  }

  function skipComments(): void {
    for (skipSpaces(); take('('); skipSpaces()) {
      let depth = 1;
      let position = 0;
      for (; position < rest.length && depth > 0; position++) {
        const character = rest[position];
        if (character === '\\' && position + 1 < rest.length) position++;
        else if (character === '(') depth++;
        else if (character === ')') depth--;
      }
      if (depth > 0) throw new MailFault('mail: misformatted parenthetical comment');
      rest = rest.slice(position);
    }
  }

  function localAtDomain(): void {
    skipSpaces();
    if (rest === '') throw new MailFault('mail: no addr-spec');
    if (!rest.startsWith('"')) atom();
    else if (quoted() === '') throw new MailFault('mail: empty quoted string in addr-spec');
    if (!take('@')) throw new MailFault('mail: missing @ in addr-spec');
    skipSpaces();
    if (rest === '') throw new MailFault('mail: no domain in addr-spec');
    if (!take('[')) {
      atom();
      return;
    }
    const end = rest.indexOf(']');
    if (end < 0) throw new MailFault('mail: unclosed domain-literal');
    const literal = rest.slice(0, end);
    if (isIP(literal) === 0) {
      throw new MailFault(`mail: invalid IP address in domain-literal: ${quoteGo(literal)}`);
    }
    rest = rest.slice(end + 1);
  }

  function atom(isPermissive = false): string {
    const [taken = ''] = atomText.exec(rest) ?? [];
    if (taken === '') throw new MailFault('mail: invalid string');
    rest = rest.slice(taken.length);
    if (isPermissive) return taken;
    if (taken.startsWith('.')) throw new MailFault('mail: leading dot in atom');
    if (taken.includes('..')) throw new MailFault('mail: double dot in atom');
    if (taken.endsWith('.')) throw new MailFault('mail: trailing dot in atom');
    return taken;
  }

  function quoted(): string {
    let content = '';
    let isEscaped = false;
    let length = 1;
    for (const character of rest.slice(1)) {
      length += character.length;
      if (!isEscaped && character === '"') {
        rest = rest.slice(length);
        return content;
      }
      if (!isEscaped && character === '\\') {
        isEscaped = true;
        continue;
      }
      if (!printing.test(character)) {
        throw new MailFault(`mail: bad character in quoted-string: '${quoteGo(character).slice(1, -1)}'`);
      }
      content += character;
      isEscaped = false;
    }
    throw new MailFault('mail: unclosed quoted-string');
  }

  function phrase(): string {
    const words: string[] = [];
    for (;;) {
      if (words.length > 0) skipComments();
      skipSpaces();
      if (rest === '') return words.join(' ');
      try {
        words.push(rest.startsWith('"') ? quoted() : atom(true));
      } catch (error) {
        if (!(error instanceof MailFault)) throw error;
        if (words.length > 0) return words.join(' ');
        throw new MailFault(`mail: missing word in phrase: ${error.message}`);
      }
    }
  }

  address();
  skipComments();
  return rest;
}
