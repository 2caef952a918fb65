import { withOpen } from '../../core/concurrency.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { type BundleStore, createBundleStore } from '../../repo/bundle-store.js';
import { type Session, withChanges } from '../../source/session.js';
import { readBundleImage } from '../../source/template.js';

/** Returns a session that keeps layers of bundle images in the cache of catalog layers, unless it has its own. */
async function withImageCache(session: Session): Promise<Session> {
  if (session.cache !== undefined) return session;
  return withChanges(session, { cache: await session.catalogCache?.() });
}

/** Runs `work` with a store of bundles, each read once, and a temporary directory for rendered catalogs. */
export async function withRendering<T>(
  session: Session,
  work: (rendering: { bundles: BundleStore; directory: string }) => Promise<T>,
): Promise<T> {
  const cached = await withImageCache(session);
  const store = createBundleStore((image) => readBundleImage(image, cached), session.temporaryDirectory);
  return withOpen(store, (bundles) =>
    withTemporaryDirectory(session, (directory) => work({ bundles, directory })),
  );
}
