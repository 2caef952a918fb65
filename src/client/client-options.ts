import { X509Certificate } from 'node:crypto';
import { OpmateError } from '../core/errors.js';
import { decodeUtf8, parseGoJson } from '../document/go-json.js';
import type { JsonValue } from '../document/json.js';
import { oneLine } from '../oci/transport/transport-responses.js';

/** Options of clients of both APIs. */
export interface ClientOptions {
  /** Trusted certificate authorities in PEM; default: those of Node.js. */
  ca?: string | Buffer | undefined;
  /** Maximum time without data while waiting, in milliseconds; default: 30 s. */
  idleTimeoutMs?: number | undefined;
  /** Maximum attempts of a call if the server is unreachable or requests a retry; default: 3. */
  maxAttempts?: number | undefined;
  /** Wait before the second attempt, doubled each time, in milliseconds; default: 500 ms. */
  retryDelayMs?: number | undefined;
  /** Returns a number from 0 to 1, for the jitter of waits; default: always 0.5. */
  random?: (() => number) | undefined;
}

/** Returns waits and attempts of a client, with defaults. */
export function resolveWaits({ idleTimeoutMs, maxAttempts, retryDelayMs, random }: ClientOptions) {
  return {
    idleTimeoutMs: idleTimeoutMs ?? 30_000,
    maxAttempts: maxAttempts ?? 3,
    retryDelayMs: retryDelayMs ?? 500,
    random: random ?? (() => 0.5),
  };
}

/** Maximum bytes of a response that is returned whole, such as all package names. */
export const maxCollectedBytes = 256 * 1024 * 1024;
/** Maximum characters of a server's text in a message. */
export const maxShownText = 300;
/** Hint for an untrusted certificate. */
export const certificateHint = 'set the option ca to its certificate authority';

/** Reads JSON of a server. Errors start with `subject`, and show little of the server's text. */
export function readServerJson<T>(bytes: Buffer, subject: string, read: (value: JsonValue) => T): T {
  try {
    return read(parseGoJson(decodeUtf8(bytes)));
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw new OpmateError(error.code, oneLine(error.message, maxShownText), { subject });
  }
}

/** Throws OpmateError INVALID for invalid certificates, which Node.js would read as an empty list. */
export function checkAuthorities(ca: string | Buffer | undefined): void {
  try {
    if (ca !== undefined) new X509Certificate(ca);
  } catch (cause) {
    throw new OpmateError('INVALID', 'option ca: invalid certificate', { hint: 'use PEM', cause });
  }
}
