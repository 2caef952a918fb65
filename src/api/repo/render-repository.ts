import { withOpen } from '../../core/concurrency.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { createBundleStore } from '../../repo/bundle-store.js';
import { renderCatalogs } from '../../repo/render-catalogs.js';
import { openRepository } from '../../repo/repository.js';
import { type CatalogState, compareCatalogs, writeCatalogs } from '../../repo/write-catalogs.js';
import type { Session } from '../../source/session.js';
import { readBundleImage } from '../../source/template.js';
import { withImageCache } from './image-cache.js';

/** Options of `renderRepository`. */
export interface RenderRepositoryOptions {
  /** Operators to render; default: all that `ci.yaml` maps to catalogs. */
  operators?: readonly string[] | undefined;
  /** Catalogs to render; default: all. */
  catalogs?: readonly string[] | undefined;
  /** Compare with the repository without writing. */
  check?: boolean | undefined;
}

/** Catalogs of a repository, rendered. */
export interface RenderedRepository {
  catalogs: CatalogState[];
  /** Number of bundle images that were read. */
  images: number;
}

/**
 * Renders the templates of an operator repository to its catalogs. Each image is read once; catalogs whose content is
 * the same are not written; all are written or none. Throws OpmateError with all problems of all operators.
 */
export async function renderRepository(
  root: string,
  session: Session,
  { operators, catalogs: names, check = false }: RenderRepositoryOptions = {},
): Promise<RenderedRepository> {
  const repository = await openRepository(root);
  const cached = await withImageCache(session);
  const store = createBundleStore((image) => readBundleImage(image, cached), session.temporaryDirectory);
  return withOpen(store, (bundles) =>
    withTemporaryDirectory(session, async (directory) => {
      const options = { operators, catalogs: names, bundles, directory };
      const catalogs = await renderCatalogs(repository, session, options);
      const states = await compareCatalogs(repository, catalogs);
      if (!check) await writeCatalogs(repository, catalogs, states);
      return { catalogs: states, images: bundles.size };
    }),
  );
}
