import { withOpen } from '../../core/concurrency.js';
import { addContext } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import type { BundleBlob } from '../../model/declarative-config.js';
import { readCheckoutBundle } from '../../repo/checkout-bundles.js';
import { type BundleStore, createBundleStore } from '../../repo/bundle-store.js';
import { type Session, withChanges } from '../../source/session.js';
import { readBundleImage } from '../../source/template.js';

/** Returns a session that keeps layers of bundle images in the cache of catalog layers, unless it has its own. */
async function withImageCache(session: Session): Promise<Session> {
  if (session.cache !== undefined) return session;
  return withChanges(session, { cache: await session.catalogCache?.() });
}

/** Throws the error of an unavailable image with what its bundle would be found by in the checkout. */
function hintAtName(error: unknown): never {
  if (!(error instanceof OpmateError) || !['NOT_FOUND', 'NETWORK'].includes(error.code)) throw error;
  const newHint = 'add name: NAME.vVERSION to its entry in a basic template to read the checkout';
  throw addContext(error, { newHint });
}

/** Bundles and the directory of a rendering. */
export interface Rendering {
  bundles: BundleStore;
  directory: string;
}

/**
 * Runs `work` with a store of bundles, each read once, and a temporary directory for rendered catalogs. Images in
 * `directories` are read from these bundle directories.
 */
export async function withRendering<T>(
  session: Session,
  work: (rendering: Rendering) => Promise<T>,
  directories?: ReadonlyMap<string, string>,
): Promise<T> {
  const cached = await withImageCache(session);
  const readBundle = (image: string): Promise<BundleBlob> => {
    if (directories === undefined) return readBundleImage(image, cached);
    const directory = directories.get(image);
    if (directory === undefined) return readBundleImage(image, cached).catch(hintAtName);
    return readCheckoutBundle(directory, image, session);
  };
  const store = createBundleStore(readBundle, session.temporaryDirectory);
  return withOpen(store, (bundles) =>
    withTemporaryDirectory(session, (directory) => work({ bundles, directory })),
  );
}
