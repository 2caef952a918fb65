import { withOpen } from '../../core/concurrency.js';
import path from 'node:path';
import { OpmateError } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { type Reference, checkPullSpec, findReference, parseReference } from '../../core/reference.js';
import { statIfPresent } from '../../files/file-status.js';
import { parseImageName } from '../../mirror/naming/image-name.js';
import {
  type ImageList,
  type ImageSelection,
  listCatalogImages,
} from '../../mirror/mapping/catalog-image-list.js';
import { NotDockerArchiveError } from '../../oci/archive-set/archive-source.js';
import { openReference } from '../../oci/image/open.js';
import { openImageSource } from '../../source/drivers/image.js';
import type { Session } from '../../source/session.js';
import type { CatalogSource, Source } from '../../source/source-types.js';
import { openSource } from '../../source/source.js';
import { requireCatalog } from '../open-catalog.js';

/** Options of `listImages`. */
export interface ListImagesOptions extends ImageSelection {
  /** Add images named only in deployments, such as in variables `RELATED_IMAGE_*`; default false. */
  includeUndeclared?: boolean | undefined;
}

/** The images of a catalog. */
export interface CatalogImageList extends ImageList {
  /** Finds the name by which a cluster pulls the catalog; undefined for a catalog that is not an image of a registry. */
  findCatalogImage(): Promise<string | undefined>;
}

/**
 * Lists the images that a catalog, or a part of it, needs. The catalog is any reference, the directory of a layout, or
 * the only image of an archive or layout of any kind. `mapCatalogImages` maps the images to a mirror. Throws OpmateError,
 * NOT_FOUND with the nearest name for packages, channels and bundles that the catalog lacks.
 */
export async function listImages(
  from: string | { archive: string },
  session: Session,
  options: ListImagesOptions = {},
): Promise<CatalogImageList> {
  const { source, archive } = await openListed(from, session);
  const list = await withOpen(source, ({ catalog }) => listCatalogImages(catalog, options, session));
  const { undeclared } = list;
  const images = options.includeUndeclared
    ? sortedByBytes(new Set([...list.images, ...undeclared.map(({ image }) => image)]))
    : list.images;
  const findCatalogImage = (): Promise<string | undefined> =>
    archive === undefined ? findPullable(from) : findNameInArchive(archive, session);
  return { ...list, images, findCatalogImage };
}

/** A catalog, and the archive or layout that its image is in, if it is in one. */
interface ListedCatalog {
  source: CatalogSource;
  archive: Reference | undefined;
}

async function openListed(from: string | { archive: string }, session: Session): Promise<ListedCatalog> {
  if (typeof from !== 'string') return openArchive(from.archive, session);
  if ((await statIfPresent(path.join(from, 'oci-layout'))) !== undefined) {
    return openArchiveAs('oci', from, session);
  }
  const source = await requireListed(await openSource(from, session), from);
  return { source, archive: await findArchive(from) };
}

/** Opens the only image of an archive or layout, whichever kind it is. */
async function openArchive(text: string, session: Session): Promise<ListedCatalog> {
  if (/^(?:oci|oci-archive|docker-archive):/.test(text)) return openIn(parseReference(text), session);
  const stats = await statIfPresent(text);
  if (stats === undefined) {
    throw new OpmateError('NOT_FOUND', `${text}: no such file or directory`, {
      file: text,
      hint: 'specify a file of docker save or of an OCI layout, or a layout directory',
    });
  }
  if (stats.isDirectory()) return openArchiveAs('oci', text, session);
  try {
    return await openArchiveAs('docker-archive', text, session);
  } catch (error) {
    if (!(error instanceof NotDockerArchiveError)) throw error;
  }
  return openArchiveAs('oci-archive', text, session);
}

function openArchiveAs(
  transport: 'oci' | 'oci-archive' | 'docker-archive',
  file: string,
  session: Session,
): Promise<ListedCatalog> {
  return openIn({ transport, text: `${transport}:${file}`, path: file }, session);
}

async function openIn(archive: Reference, session: Session): Promise<ListedCatalog> {
  return { source: await requireListed(await openImageSource(archive, session), archive.text), archive };
}

function requireListed(source: Source, name: string): Promise<CatalogSource> {
  return requireCatalog(source, name, {
    hint: `run api.showBundle ${name} to list the images of a bundle`,
  });
}

/** The archive or layout that a reference names with its transport. */
async function findArchive(from: string): Promise<Reference | undefined> {
  if ((await statIfPresent(from)) !== undefined) return undefined;
  const reference = findReference(from);
  return reference?.transport === 'docker' ? undefined : reference;
}

/** Returns the name of an archived image if it has a registry, as `RepoTags` of `docker save` may have. */
async function findNameInArchive(archive: Reference, session: Session): Promise<string | undefined> {
  return withOpen(openReference(archive, session), ({ reference: name }) =>
    checkPullSpec(name) === undefined && findRegistry(name) !== undefined ? name : undefined,
  );
}

/** Returns the reference by which a cluster pulls a catalog; undefined if it is in no registry. */
async function findPullable(from: string | { archive: string }): Promise<string | undefined> {
  if (typeof from !== 'string' || (await statIfPresent(from)) !== undefined) return undefined;
  return findReference(from)?.transport === 'docker' ? from.replace(/^docker:\/\//, '') : undefined;
}

/** Returns the registry of a pull spec that names one. */
export function findRegistry(image: string): string | undefined {
  if (!image.includes('/')) return undefined;
  const { registry } = parseImageName(image);
  return registry === '' ? undefined : registry;
}
