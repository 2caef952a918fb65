import { X509Certificate } from 'node:crypto';
import { OpmateError } from '../core/errors.js';

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

export const defaultIdleTimeoutMs = 30_000;
export const defaultMaxAttempts = 3;
export const defaultRetryDelayMs = 500;
export const defaultRandom = (): number => 0.5;
/** Maximum bytes of a response that is returned whole, such as all package names. */
export const maxCollectedBytes = 256 * 1024 * 1024;
/** Maximum characters of a server's text in a message. */
export const maxShownText = 300;
/** Hint for an untrusted certificate. */
export const certificateHint = 'set the option ca to its certificate authority';

/** Throws OpmateError INVALID for invalid certificates, which Node.js would read as an empty list. */
export function checkAuthorities(ca: string | Buffer | undefined): void {
  try {
    if (ca !== undefined) new X509Certificate(ca);
  } catch (cause) {
    throw new OpmateError('INVALID', 'option ca: invalid certificate', { hint: 'use PEM', cause });
  }
}
