import { computeDigest, parseDigest } from '../../core/digest.js';

/** First and maximum wait after a failure. */
const firstRetryMs = 5_000;
const maxRetryMs = 10 * 60_000;
/** Maximum delay of a poll, as part of its interval. (Source: catalogd.) */
const pollJitter = 0.01;

/** Returns the wait after a number of failures, in milliseconds; `random` is from 0 to 1. */
export function getRetryWait(failures: number, random: number): number {
  return Math.min(maxRetryMs, firstRetryMs * 2 ** Math.min(failures, 20)) * (0.75 + random / 2);
}

/** Returns the wait for the next poll, in milliseconds; `random` is from 0 to 1. */
export function getPollWait(pollMs: number, random: number): number {
  return pollMs * (1 + random * pollJitter);
}

/**
 * Returns the wait for the second look, in milliseconds. All catalogs start together; afterwards each has its phase of the
 * interval, equal on every server.
 */
export function getFirstPollWait(pollMs: number, name: string): number {
  const { hex } = parseDigest(computeDigest(name));
  return (pollMs * (Number.parseInt(hex.slice(0, 8), 16) + 1)) / 2 ** 32;
}
