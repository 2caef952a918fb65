import { type Session, withChanges } from '../../source/session.js';

/** Returns a session that keeps layers of bundle images in the cache of catalog layers, unless it has its own. */
export async function withImageCache(session: Session): Promise<Session> {
  if (session.cache !== undefined) return session;
  return withChanges(session, { cache: await session.catalogCache?.() });
}
