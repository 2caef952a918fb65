import type { CancelOptions } from '../core/concurrency.js';
import type { Logger } from '../core/log.js';
import { schemas } from '../model/declarative-config.js';
import { type PackageContent, addToContent, emptyContent } from '../graph/resolve-content.js';
import { decodeMeta } from './blob.js';
import type { Catalog } from './catalog.js';
import { readLocated } from './locate.js';

/**
 * Reads a catalog once and returns what resolution needs of one package. Throws OpmateError with file and line for an
 * invalid blob of the package; ignores faults in other packages.
 */
export async function readPackageContent(
  catalog: Catalog,
  packageName: string,
  { signal, logger }: CancelOptions & { logger?: Logger | undefined } = {},
): Promise<PackageContent> {
  const content = emptyContent();
  await readLocated(catalog, { withoutManifests: true, signal, logger }, (meta) => {
    const isOfPackage =
      meta.package === packageName || (meta.schema === schemas.package && meta.name === packageName);
    if (isOfPackage) addToContent(content, decodeMeta(meta));
  });
  return content;
}
