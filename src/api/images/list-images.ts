import {
  type ImageList,
  type ImageSelection,
  listCatalogImages,
} from '../../mirror/mapping/registry-images.js';
import type { Session } from '../../source/session.js';
import { withCatalog } from '../open-catalog.js';

/**
 * Lists the images that a catalog, or a part of it, needs. `mapToRegistry` maps them to a mirror, and
 * `encodeRegistryManifests` writes the ImageContentSourcePolicy or ImageDigestMirrorSet and the CatalogSource for it.
 * Throws OpmateError, NOT_FOUND with the nearest name for packages, channels and bundles that the catalog lacks.
 */
export async function listImages(
  reference: string,
  session: Session,
  selection: ImageSelection = {},
): Promise<ImageList> {
  return withCatalog(reference, session, ({ catalog }) => listCatalogImages(catalog, selection, session));
}
