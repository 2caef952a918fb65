import { tmpdir } from 'node:os';
import { drawRandom, getHomeDirectory } from './own-process.js';
import { type Session, type SessionOptions, openSourceSession } from '../source/session.js';

export { parsePlatform } from '../oci/image/platform.js';
export { openSourceSession, withChanges } from '../source/session.js';

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
