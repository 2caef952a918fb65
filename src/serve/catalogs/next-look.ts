import { computeDigest, parseDigest } from '../../core/digest.js';

/** The first wait after a failure, and the longest. */
const firstRetryMs = 5_000;
const maxRetryMs = 10 * 60_000;
/** A poll comes up to this part of its interval later. (Source: catalogd.) */
const pollJitter = 0.01;

/** Returns how long to wait after a number of failures, in milliseconds; `random` is from 0 to 1. */
export function getRetryWait(failures: number, random: number): number {
  return Math.min(maxRetryMs, firstRetryMs * 2 ** Math.min(failures, 20)) * (0.75 + random / 2);
}

/** Returns how long to wait for the next poll, in milliseconds; `random` is from 0 to 1. */
export function getPollWait(pollMs: number, random: number): number {
  return pollMs * (1 + random * pollJitter);
}

/**
 * Returns how long to wait for the second look, in milliseconds. All catalogs begin together; from then on each has its
 * own moment in its interval, the same on every server.
 */
export function getFirstPollWait(pollMs: number, name: string): number {
  const { hex } = parseDigest(computeDigest(name));
  return (pollMs * (Number.parseInt(hex.slice(0, 8), 16) + 1)) / 2 ** 32;
}
