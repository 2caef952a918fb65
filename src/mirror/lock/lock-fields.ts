import { isDigest } from '../../core/digest.js';
import { type ErrorCode, OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { isJsonObject } from '../../document/json.js';
import { parseReference } from '../../core/reference.js';

const maxTextLength = 4096;
const maxShown = 100;

/** A value of a lock file and where it stands; each way of reading it throws OpmateError INVALID with its path. */
export class LockField {
  readonly value: unknown;
  readonly #file: string;
  readonly #parent: LockField | undefined;
  readonly #key: string | number;

  constructor(value: unknown, file: string, parent?: LockField, key: string | number = '') {
    this.value = value;
    this.#file = file;
    this.#parent = parent;
    this.#key = key;
  }

  /** An error that begins with file and path: `opmate.lock.json: images[3].digest: …`. */
  fault(problem: string, code: ErrorCode = 'INVALID', hint?: string): OpmateError {
    const path = this.#path();
    const message = path === '' ? `${this.#file}: ${problem}` : `${this.#file}: ${path}: ${problem}`;
    return new OpmateError(code, message, { file: this.#file, hint });
  }

  #path(): string {
    if (this.#parent === undefined) return '';
    const before = this.#parent.#path();
    if (typeof this.#key === 'number') return `${before}[${this.#key}]`;
    if (!/^[A-Za-z]\w*$/.test(this.#key)) return `${before}[${shown(this.#key)}]`;
    return before === '' ? this.#key : `${before}.${this.#key}`;
  }

  /** The fields of an object that may have these keys and no others. */
  object<K extends string>(keys: readonly K[]): Readonly<Record<K, LockField>> {
    const value = this.#object();
    const known: readonly string[] = keys;
    for (const key of Object.keys(value)) {
      if (!known.includes(key)) throw this.fault(`unknown field ${shown(key)}`);
    }
    const fields = keys.map((key) => {
      const field = Object.hasOwn(value, key) ? value[key] : undefined;
      return [key, new LockField(field, this.#file, this, key)] as const;
    });
    return Object.fromEntries(fields) as Record<K, LockField>;
  }

  /** The fields of an object with keys of its own. */
  entries(most: number): [key: string, field: LockField][] {
    const entries = Object.entries(this.#object());
    if (entries.length > most) throw this.fault(`more than ${most} entries`, 'LIMIT');
    return entries.map(([key, value]) => [key, new LockField(value, this.#file, this, key)]);
  }

  #object(): Record<string, unknown> {
    this.#require();
    if (!isJsonObject(this.value)) throw this.fault('expected an object');
    return this.value;
  }

  list(most: number): LockField[] {
    this.#require();
    if (!Array.isArray(this.value)) throw this.fault('expected a list');
    if (this.value.length > most) throw this.fault(`more than ${most} entries`, 'LIMIT');
    return this.value.map((value, i) => new LockField(value, this.#file, this, i));
  }

  get isGiven(): boolean {
    return this.value !== undefined;
  }

  /** Text, not empty. */
  text(): string {
    const text = this.name();
    if (text === '') throw this.fault('is empty');
    return text;
  }

  /** Text that is what a catalog says, and so may be empty. */
  name(maxLength = maxTextLength): string {
    this.#require();
    if (typeof this.value !== 'string') throw this.fault('expected text');
    if (this.value.length > maxLength) throw this.fault(`longer than ${maxLength} characters`, 'LIMIT');
    return this.value;
  }

  boolean(): boolean {
    this.#require();
    if (typeof this.value !== 'boolean') throw this.fault('expected true or false');
    return this.value;
  }

  /** A number of bytes. */
  size(most = Number.MAX_SAFE_INTEGER): number {
    this.#require();
    const { value } = this;
    if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0)
      throw this.fault('not a number of bytes');
    if (value > most) throw this.fault(`more than ${most} bytes`, 'LIMIT');
    return value;
  }

  digest(): string {
    const text = this.text();
    if (!isDigest(text)) throw this.fault(`${shown(text)} is not a digest`);
    return text;
  }

  oneOf<T extends string>(choices: readonly T[]): T {
    const text = this.text();
    const found = choices.find((choice) => choice === text);
    if (found === undefined) throw this.fault(`${shown(text)} is none of ${choices.join(', ')}`);
    return found;
  }

  /** A path of a repository in a registry. */
  repository(): string {
    const text = this.text();
    if (!isRepository(text)) throw this.fault(`${shown(text)} is not a repository`);
    return text;
  }

  tag(): string {
    const text = this.text();
    if (!/^\w[\w.-]{0,127}$/.test(text)) throw this.fault(`${shown(text)} is not a tag`);
    return text;
  }

  /** An image reference, as text. */
  reference(): string {
    const text = this.text();
    try {
      parseReference(text);
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      throw this.fault(error.message);
    }
    return text;
  }

  #require(): void {
    if (!this.isGiven) throw this.fault('is missing');
  }
}

function isRepository(text: string): boolean {
  try {
    const parsed = parseReference(`docker://localhost/${text}`);
    return parsed.transport === 'docker' && parsed.repository === text;
  } catch {
    return false;
  }
}

/** Foreign text for a message: short and on one line. */
function shown(text: string): string {
  return quoteGo(text.length > maxShown ? `${text.slice(0, maxShown)}…` : text);
}
