import { createHash, randomBytes } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { LimitError, OpmateError, fileError } from '../../core/errors.js';
import { getFileIdentity } from '../../files/file-status.js';

const maxFileBytes = 1024 * 1024;
/** Maximum bcrypt cost, which doubles per step: 2^17 rounds take seconds; bcrypt allows 31. */
const maxCost = 16;
/** Minimum time between checks of the file. */
const rereadMs = 1_000;
/** Maximum pending password checks, of 0.1 s processor time each. */
const maxPending = 32;
/** Maximum remembered correct passwords: requests of a push need no further checks. */
const maxRemembered = 1_000;
const bcryptPattern = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;

type PasswordVerdict = 'right' | 'wrong' | 'busy';

/**
 * Passwords of an htpasswd file: one `USER:HASH` per line, bcrypt only, as other registries. Read again when it changes; an
 * unreadable file rejects all users.
 */
export class PasswordFile {
  readonly #file: string;
  readonly #salt = randomBytes(16);
  #hashes = new Map<string, string>();
  #version = '';
  #checkedAt = -Infinity;
  #right = new Set<string>();
  #pending = 0;
  #last: Promise<unknown> = Promise.resolve();
  /** Hash for unknown users: their checks take equally long. */
  #decoy: Promise<string> | undefined;

  private constructor(file: string) {
    this.#file = file;
  }

  /** Throws OpmateError for an unreadable file, an invalid line, or no users. */
  static async open(file: string): Promise<PasswordFile> {
    const passwords = new PasswordFile(file);
    await passwords.#refresh();
    return passwords;
  }

  /** Checks an `Authorization` header. Throws OpmateError once the file has become unreadable. */
  async check(header: string | undefined): Promise<PasswordVerdict> {
    const credentials = parseCredentials(header);
    if (credentials === undefined) return 'wrong';
    await this.#refresh();
    const [user, password] = credentials;
    const hash = this.#hashes.get(user);
    const key = createHash('sha256')
      .update(this.#salt)
      .update(JSON.stringify([user, password, hash ?? '']))
      .digest('base64');
    if (this.#right.has(key)) return 'right';
    if (this.#pending >= maxPending) return 'busy';
    this.#pending++;
    // One at a time: guessing passwords must not slow down other work.
    const checking = this.#last.then(() => this.#compare(password, hash));
    this.#last = checking.catch(() => undefined);
    try {
      if (!(await checking)) return 'wrong';
    } finally {
      this.#pending--;
    }
    if (this.#right.size >= maxRemembered) this.#right = new Set();
    this.#right.add(key);
    return 'right';
  }

  async #compare(password: string, hash: string | undefined): Promise<boolean> {
    const { default: bcrypt } = await import('bcryptjs');
    if (hash !== undefined) return bcrypt.compare(password, hash);
    this.#decoy ??= bcrypt.hash(randomBytes(16).toString('hex'), 10);
    await bcrypt.compare(password, await this.#decoy);
    return false;
  }

  async #refresh(): Promise<void> {
    const now = performance.now();
    if (now - this.#checkedAt < rereadMs) return;
    const file = this.#file;
    try {
      const stats = await stat(file, { bigint: true });
      const version = getFileIdentity(stats);
      if (version !== this.#version) {
        if (stats.size > maxFileBytes) throw new LimitError(`${file}: more than ${maxFileBytes} bytes`);
        this.#hashes = parsePasswords(await readFile(file, 'utf8'), file);
        this.#version = version;
        this.#right = new Set();
      }
      this.#checkedAt = now;
    } catch (error) {
      throw fileError(file, error, { file });
    }
  }
}

function parsePasswords(text: string, file: string): Map<string, string> {
  const hashes = new Map<string, string>();
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const fail = (problem: string): OpmateError =>
      new OpmateError('INVALID', `${file}:${index + 1}: ${problem}`, {
        file,
        line: index + 1,
        hint: 'create the file with htpasswd -B -c FILE USER',
      });
    const colon = line.indexOf(':');
    if (colon <= 0) throw fail('expected USER:HASH');
    const [user, hash] = [line.slice(0, colon), line.slice(colon + 1)];
    const cost = bcryptPattern.exec(hash)?.[1];
    if (cost === undefined) throw fail(`user ${JSON.stringify(user)}: unsupported hash, expected bcrypt`);
    if (Number(cost) > maxCost) throw fail(`user ${JSON.stringify(user)}: bcrypt cost above ${maxCost}`);
    if (hashes.has(user)) throw fail(`duplicate user ${JSON.stringify(user)}`);
    hashes.set(user, hash);
  }
  if (hashes.size > 0) return hashes;
  throw new OpmateError('INVALID', `${file}: no users`, { hint: 'add one with htpasswd -B FILE USER' });
}

/** Parses user and password of the `Basic` scheme (RFC 7617). */
function parseCredentials(header: string | undefined): [string, string] | undefined {
  const [, encoded] = /^basic\s+([A-Za-z0-9+/=]{1,4096})$/i.exec(header?.trim() ?? '') ?? [];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  return colon < 0 ? undefined : [text.slice(0, colon), text.slice(colon + 1)];
}
