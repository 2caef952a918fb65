import { isIP } from 'node:net';
import { quoteGo } from '../../document/go-json.js';

/**
 * Returns the fault of a text as one mail address (RFC 5322), in the words of Go's `net/mail`; undefined if valid:
 * `name@example.com`, or `A name <name@example.com>`. Groups are not taken apart.
 */
export function mailAddressFault(text: string): string | undefined {
  try {
    const reader = new Reader(text);
    reader.address();
    reader.comments();
    if (reader.rest !== '') return `mail: expected single address, got ${quoteGo(reader.rest)}`;
    return undefined;
  } catch (error) {
    if (error instanceof MailFault) return error.message;
    throw error;
  }
}

class MailFault extends Error {}

const atomCharacter = /[A-Za-z0-9!#$%&'*+\-/=?^_`{|}~.\u0080-\u{10ffff}]/u;
const printing = /[\x21-\x7e\u0080-\u{10ffff} \t]/u;

class Reader {
  rest: string;
  constructor(text: string) {
    this.rest = text;
  }

  address(): void {
    this.#spaces();
    if (this.rest === '') throw new MailFault('mail: no address');
    const begin = this.rest;
    try {
      this.#spec();
      this.#spaces();
      return;
    } catch (error) {
      if (!(error instanceof MailFault)) throw error;
      this.rest = begin;
    }
    const name = this.rest.startsWith('<') ? '' : this.#phrase();
    this.#spaces();
    if (this.rest.startsWith(':')) throw new MailFault('mail: empty group');
    if (!this.#take('<')) {
      const isAtom = [...name].every((character) => atomCharacter.test(character));
      throw new MailFault(isAtom ? "mail: missing '@' or angle-addr" : 'mail: no angle-addr');
    }
    this.#spec();
    if (!this.#take('>')) throw new MailFault('mail: unclosed angle-addr');
  }

  /** Skips comments in parentheses. */
  comments(): void {
    for (this.#spaces(); this.#take('('); this.#spaces()) {
      let depth = 1;
      let position = 0;
      for (; position < this.rest.length && depth > 0; position++) {
        const character = this.rest[position];
        if (character === '\\' && position + 1 < this.rest.length) position++;
        else if (character === '(') depth++;
        else if (character === ')') depth--;
      }
      if (depth > 0) throw new MailFault('mail: misformatted parenthetical comment');
      this.rest = this.rest.slice(position);
    }
  }

  #take(character: string): boolean {
    if (!this.rest.startsWith(character)) return false;
    this.rest = this.rest.slice(1);
    return true;
  }

  #spaces(): void {
    this.rest = this.rest.replace(/^[ \t]+/, '');
  }

  /** `local@domain`. */
  #spec(): void {
    this.#spaces();
    if (this.rest === '') throw new MailFault('mail: no addr-spec');
    if (!this.rest.startsWith('"')) this.#atom();
    else if (this.#quoted() === '') throw new MailFault('mail: empty quoted string in addr-spec');
    if (!this.#take('@')) throw new MailFault('mail: missing @ in addr-spec');
    this.#spaces();
    if (this.rest === '') throw new MailFault('mail: no domain in addr-spec');
    if (!this.#take('[')) {
      this.#atom();
      return;
    }
    const end = this.rest.indexOf(']');
    if (end < 0) throw new MailFault('mail: unclosed domain-literal');
    const literal = this.rest.slice(0, end);
    if (isIP(literal) === 0) {
      throw new MailFault(`mail: invalid IP address in domain-literal: ${quoteGo(literal)}`);
    }
    this.rest = this.rest.slice(end + 1);
  }

  #atom(isPermissive = false): string {
    let length = 0;
    for (const character of this.rest) {
      if (!atomCharacter.test(character)) break;
      length += character.length;
    }
    if (length === 0) throw new MailFault('mail: invalid string');
    const atom = this.rest.slice(0, length);
    this.rest = this.rest.slice(length);
    if (!isPermissive) {
      if (atom.startsWith('.')) throw new MailFault('mail: leading dot in atom');
      if (atom.includes('..')) throw new MailFault('mail: double dot in atom');
      if (atom.endsWith('.')) throw new MailFault('mail: trailing dot in atom');
    }
    return atom;
  }

  #quoted(): string {
    let text = '';
    let isEscaped = false;
    let length = 1;
    for (const character of this.rest.slice(1)) {
      length += character.length;
      if (!isEscaped && character === '"') {
        this.rest = this.rest.slice(length);
        return text;
      }
      if (!isEscaped && character === '\\') {
        isEscaped = true;
        continue;
      }
      if (!printing.test(character)) {
        throw new MailFault(`mail: bad character in quoted-string: '${quoteGo(character).slice(1, -1)}'`);
      }
      text += character;
      isEscaped = false;
    }
    throw new MailFault('mail: unclosed quoted-string');
  }

  #phrase(): string {
    const words: string[] = [];
    for (;;) {
      if (words.length > 0) this.comments();
      this.#spaces();
      if (this.rest === '') return words.join(' ');
      try {
        words.push(this.rest.startsWith('"') ? this.#quoted() : this.#atom(true));
      } catch (error) {
        if (!(error instanceof MailFault)) throw error;
        if (words.length > 0) return words.join(' ');
        throw new MailFault(`mail: missing word in phrase: ${error.message}`);
      }
    }
  }
}
