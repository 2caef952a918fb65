import type { Catalog } from '../catalog/catalog.js';
import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import type { Logger } from '../core/log.js';
import type { CatalogFacts } from '../model/facts.js';
import type { Repository } from '../oci/repository.js';
import type { Platform } from '../oci/types.js';

export interface RebuildOptions extends CancelOptions {
  /** Where the layer is written until the image is pushed. */
  temporaryDirectory: string;
  /** Only these of the image's platforms; all of them for Linux when left out. */
  platforms?: readonly Platform[] | undefined;
  /** Images that `relatedImages` of the bundles must not name any more, by their text. */
  withoutImages?: ReadonlySet<string> | undefined;
  logger?: Logger | undefined;
}

/** A catalog image that exists only here: its own parts are local, its base's layers where they were. */
export interface RebuiltCatalog {
  /** Of the image or index. */
  digest: string;
  /** Hands out the rebuilt image by its digest, and every blob of it. */
  repository: Repository;
  close(): Promise<void>;
}

/**
 * Makes the image of a catalog of which only `facts` are kept: the original image with one layer more, which takes
 * the old catalog and its caches away and puts the new one in their place. Depends on the original image and the
 * facts alone, to the digest. `base` is the original image, by digest.
 */
export function rebuildCatalog(
  catalog: Catalog,
  facts: CatalogFacts,
  base: { repository: Repository; digest: string },
  options: RebuildOptions,
): Promise<RebuiltCatalog> {
  throw new OpmateError('INTERNAL', `${catalog.name}: not built yet`, { cause: [facts, base, options] });
}
