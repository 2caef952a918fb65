import { findCheckoutBundles } from '../../repo/checkout-bundles.js';
import { renderCatalogs } from '../../repo/render-catalogs.js';
import { openRepository } from '../../repo/repository.js';
import { type CatalogState, compareCatalogs, writeRepository } from '../../repo/write-catalogs.js';
import type { Session } from '../../source/session.js';
import { type Rendering, withRendering } from './rendering-session.js';

/** Options of `renderRepository`. */
export interface RenderRepositoryOptions {
  /** Operators to render; default: all that `ci.yaml` maps to catalogs. */
  operators?: readonly string[] | undefined;
  /** Catalogs to render; default: all. */
  catalogs?: readonly string[] | undefined;
  /**
   * Read bundles of the checkout in place of their images, where a committed catalog or a basic template has the name of
   * the bundle in the image, or the reference is `…/OPERATOR:VERSION`; other images are pulled.
   */
  fromCheckout?: boolean | undefined;
  /** Compare with the repository without writing. */
  check?: boolean | undefined;
}

/** Catalogs of a repository, rendered. */
export interface RenderedRepository {
  catalogs: CatalogState[];
  /** Number of bundles that were read. */
  images: number;
}

/**
 * Renders the templates of an operator repository to its catalogs. Each image is read once; catalogs whose content is
 * the same are not written; all are written or none. Throws OpmateError with all problems of all operators.
 */
export async function renderRepository(
  root: string,
  session: Session,
  { operators, catalogs: names, fromCheckout = false, check = false }: RenderRepositoryOptions = {},
): Promise<RenderedRepository> {
  const repository = await openRepository(root);
  const local = fromCheckout ? await findCheckoutBundles(repository, session, operators) : undefined;
  const render = async ({ bundles, directory }: Rendering): Promise<RenderedRepository> => {
    const options = { operators, catalogs: names, bundles, directory };
    const catalogs = await renderCatalogs(repository, session, options);
    const states = await compareCatalogs(repository, catalogs);
    if (!check) await writeRepository(repository, { catalogs, states });
    return { catalogs: states, images: bundles.size };
  };
  return withRendering(session, render, local);
}
