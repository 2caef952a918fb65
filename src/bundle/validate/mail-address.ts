import { isIP } from 'node:net';
import { quoteGo } from '../../document/go-json.js';

/**
 * Returns the fault of a text as one mail address (RFC 5322), in the words of Go's `net/mail`; undefined if valid:
 * `name@example.com`, or `A name <name@example.com>`. Groups are not taken apart.
 */
export function mailAddressFault(text: string): string | undefined {
  try {
    const rest = new AddressScanner(text).readAddress();
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

/** Reads an address from the start of a text. Throws MailFault. */
class AddressScanner {
  #rest: string;

  constructor(text: string) {
    this.#rest = text;
  }

  /** Returns the text after an address and comments. */
  readAddress(): string {
    this.#address();
    this.#skipComments();
    return this.#rest;
  }

  #take(character: string): boolean {
    if (!this.#rest.startsWith(character)) return false;
    this.#rest = this.#rest.slice(1);
    return true;
  }

  #skipSpaces(): void {
    this.#rest = this.#rest.replace(/^[ \t]+/, '');
  }

  #address(): void {
    this.#skipSpaces();
    if (this.#rest === '') throw new MailFault('mail: no address');
    const begin = this.#rest;
    try {
      this.#localAtDomain();
      this.#skipSpaces();
      return;
    } catch (error) {
      if (!(error instanceof MailFault)) throw error;
      this.#rest = begin;
    }
    const name = this.#rest.startsWith('<') ? '' : this.#phrase();
    this.#skipSpaces();
    if (this.#rest.startsWith(':')) throw new MailFault('mail: empty group');
    if (!this.#take('<')) {
      const isAtom = [...name].every((character) => atomCharacter.test(character));
      throw new MailFault(isAtom ? "mail: missing '@' or angle-addr" : 'mail: no angle-addr');
    }
    this.#localAtDomain();
    if (!this.#take('>')) throw new MailFault('mail: unclosed angle-addr');
  }

  #skipComments(): void {
    for (this.#skipSpaces(); this.#take('('); this.#skipSpaces()) {
      let depth = 1;
      let position = 0;
      for (; position < this.#rest.length && depth > 0; position++) {
        const character = this.#rest[position];
        if (character === '\\' && position + 1 < this.#rest.length) position++;
        else if (character === '(') depth++;
        else if (character === ')') depth--;
      }
      if (depth > 0) throw new MailFault('mail: misformatted parenthetical comment');
      this.#rest = this.#rest.slice(position);
    }
  }

  #localAtDomain(): void {
    this.#skipSpaces();
    if (this.#rest === '') throw new MailFault('mail: no addr-spec');
    if (!this.#rest.startsWith('"')) this.#atom();
    else if (this.#quoted() === '') throw new MailFault('mail: empty quoted string in addr-spec');
    if (!this.#take('@')) throw new MailFault('mail: missing @ in addr-spec');
    this.#skipSpaces();
    if (this.#rest === '') throw new MailFault('mail: no domain in addr-spec');
    if (!this.#take('[')) {
      this.#atom();
      return;
    }
    const end = this.#rest.indexOf(']');
    if (end < 0) throw new MailFault('mail: unclosed domain-literal');
    const literal = this.#rest.slice(0, end);
    if (isIP(literal) === 0) {
      throw new MailFault(`mail: invalid IP address in domain-literal: ${quoteGo(literal)}`);
    }
    this.#rest = this.#rest.slice(end + 1);
  }

  #atom(isPermissive = false): string {
    const [taken = ''] = atomText.exec(this.#rest) ?? [];
    if (taken === '') throw new MailFault('mail: invalid string');
    this.#rest = this.#rest.slice(taken.length);
    if (isPermissive) return taken;
    if (taken.startsWith('.')) throw new MailFault('mail: leading dot in atom');
    if (taken.includes('..')) throw new MailFault('mail: double dot in atom');
    if (taken.endsWith('.')) throw new MailFault('mail: trailing dot in atom');
    return taken;
  }

  #quoted(): string {
    let content = '';
    let isEscaped = false;
    let length = 1;
    for (const character of this.#rest.slice(1)) {
      length += character.length;
      if (!isEscaped && character === '"') {
        this.#rest = this.#rest.slice(length);
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

  #phrase(): string {
    const words: string[] = [];
    for (;;) {
      if (words.length > 0) this.#skipComments();
      this.#skipSpaces();
      if (this.#rest === '') return words.join(' ');
      try {
        words.push(this.#rest.startsWith('"') ? this.#quoted() : this.#atom(true));
      } catch (error) {
        if (!(error instanceof MailFault)) throw error;
        if (words.length > 0) return words.join(' ');
        throw new MailFault(`mail: missing word in phrase: ${error.message}`);
      }
    }
  }
}
