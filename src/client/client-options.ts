import { X509Certificate } from 'node:crypto';
import { OpmateError } from '../core/errors.js';

/** Options that clients of both APIs have. */
export interface ClientOptions {
  /** Certificate authorities to trust, PEM; those that come with Node.js where left out. */
  ca?: string | Buffer | undefined;
  /** How long nothing may come while something is waited for; 30 s. */
  idleTimeoutMs?: number | undefined;
  /** How often a call is tried in all when the server cannot be reached or asks for it; 3. */
  maxAttempts?: number | undefined;
  /** The wait before the second attempt, which doubles with each; 500 ms. */
  retryDelayMs?: number | undefined;
  /** From 0 to 1, for the jitter of these waits; always 0.5 when left out. */
  random?: (() => number) | undefined;
}

export const defaultIdleTimeoutMs = 30_000;
export const defaultMaxAttempts = 3;
export const defaultRetryDelayMs = 500;
export const defaultRandom = (): number => 0.5;
/** Bytes of an answer that is handed out as a whole, such as all names of packages. */
export const maxCollectedBytes = 256 * 1024 * 1024;
/** Characters that a message shows of what a server said. */
export const maxShownText = 300;
/** What to do about a certificate that nobody vouches for. */
export const certificateHint = 'set the option ca to its certificate authority';

/** Throws OpmateError INVALID for what is no certificate; Node.js would take it for an empty list. */
export function checkAuthorities(ca: string | Buffer | undefined): void {
  try {
    if (ca !== undefined) new X509Certificate(ca);
  } catch (cause) {
    throw new OpmateError('INVALID', 'option ca: is not a certificate', { hint: 'use PEM', cause });
  }
}
