import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { type Session, type SessionOptions, openSourceSession } from '../source/session.js';

export { parsePlatform } from '../oci/image/platform.js';
export { openSourceSession, platformOfMachine, withChanges } from '../source/session.js';

/**
 * Opens a session: connections to registries, a cache and limits that several calls share. Environment, home and
 * temporary directory, and architecture default to those of the process. Connects on the first request. Close the
 * session at the end.
 */
export async function openSession(options: Partial<SessionOptions> = {}): Promise<Session> {
  return openSourceSession({
    ...options,
    environment: options.environment ?? process.env,
    homeDirectory: options.homeDirectory ?? getHomeDirectory(),
    temporaryDirectory: options.temporaryDirectory ?? tmpdir(),
    architecture: options.architecture ?? process.arch,
    registry: { random: drawRandom, ...options.registry },
  });
}

/** Returns the user's home directory; the root, as container engines set it, for a user without an entry and HOME. */
export function getHomeDirectory(): string {
  try {
    return homedir();
  } catch {
    return path.parse(process.execPath).root;
  }
}

/** Returns a number from 0 to 1 that spreads requests over time. */
export function drawRandom(): number {
  return Math.random();
}
