import { createHash, createHmac, randomBytes } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { LimitError, OpmateError, fileError } from '../../core/errors.js';
import { getFileIdentity } from '../../files/file-status.js';
import { createFairQueue, getClientNetwork } from './fair-queue.js';

const maxFileBytes = 1024 * 1024;
/** Maximum bcrypt cost, which doubles per step: 2^17 rounds take seconds; bcrypt allows 31. */
const maxCost = 16;
/** Minimum time between checks of the file. */
const rereadMs = 1_000;
/** Maximum remembered correct passwords: requests of a push need no further checks. */
const maxRemembered = 1_000;
const bcryptPattern = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;

/**
 * Opens the passwords of an htpasswd file: one `USER:HASH` per line, bcrypt only, as other registries. It is read again when
 * it changes; an unreadable file rejects all users. Throws OpmateError for an unreadable file, an invalid line, or no users.
 */
export async function openPasswordFile(file: string): Promise<PasswordFile> {
  const passwords = new PasswordFile(file);
  await passwords.refresh();
  return passwords;
}

/** Hashes of passwords as last read, and the passwords that were right since. */
export class PasswordFile {
  readonly #file: string;
  readonly #salt = randomBytes(16);
  #hashes = new Map<string, string>();
  #version = '';
  #checkedAt = -Infinity;
  #right = new Set<string>();
  /** Guessing passwords, of 0.1 s processor time each, must not slow down other work, nor lock other users out. */
  readonly #queue = createFairQueue();
  /** Hashes of no password, with the costs of those in the file. */
  #decoys: string[] = [];

  constructor(file: string) {
    this.#file = file;
  }

  /** Reads the file if it has changed; at most once a second. Throws as `openPasswordFile`. */
  async refresh(): Promise<void> {
    const now = performance.now();
    if (now - this.#checkedAt < rereadMs) return;
    try {
      const stats = await stat(this.#file, { bigint: true });
      const current = getFileIdentity(stats);
      if (current !== this.#version) {
        if (stats.size > maxFileBytes) throw new LimitError(`${this.#file}: more than ${maxFileBytes} bytes`);
        this.#hashes = parsePasswords(await readFile(this.#file, 'utf8'), this.#file);
        this.#decoys = [...this.#hashes.values()].map(toDecoy);
        this.#version = current;
        this.#right = new Set();
      }
      this.#checkedAt = now;
    } catch (error) {
      throw fileError(this.#file, error, { file: this.#file });
    }
  }

  async #compare(user: string, password: string, hash: string | undefined): Promise<boolean> {
    const { default: bcrypt } = await import('bcryptjs');
    if (hash !== undefined) return bcrypt.compare(password, hash);
    // An unknown user always takes the time of the same known one.
    const number = createHmac('sha256', this.#salt).update(user).digest().readUInt32BE(0);
    await bcrypt.compare(password, this.#decoys[number % this.#decoys.length] as string);
    return false;
  }

  /** Checks an `Authorization` header of a client. Throws OpmateError once the file has become unreadable. */
  async check(header: string | undefined, address?: string): Promise<'right' | 'wrong' | 'busy'> {
    const credentials = parseCredentials(header);
    if (credentials === undefined) return 'wrong';
    await this.refresh();
    const [user, password] = credentials;
    const hash = this.#hashes.get(user);
    const key = createHash('sha256')
      .update(this.#salt)
      .update(JSON.stringify([user, password, hash ?? '']))
      .digest('base64');
    if (this.#right.has(key)) return 'right';
    const client = getClientNetwork(address);
    const isRight = await this.#queue.run(client, user, () => this.#compare(user, password, hash));
    if (isRight === undefined) return 'busy';
    if (!isRight) return 'wrong';
    if (this.#right.size >= maxRemembered) this.#right = new Set();
    this.#right.add(key);
    return 'right';
  }
}

/** Returns a hash of the same cost with a random rest, which is that of no password that anybody knows. */
function toDecoy(hash: string): string {
  const letters = randomBytes(52).toString('base64').replaceAll('+', '.').slice(0, 52);
  // The last letter of the salt has two bits only.
  return `${hash.slice(0, 7)}${letters.slice(0, 21)}u${letters.slice(21, 51)}u`;
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
