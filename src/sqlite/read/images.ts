import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { notFound } from '../../core/suggest.js';
import { type ReadOptions, type ReadSession, openForReading } from '../schema/edit.js';
import { IndexQueries } from './queries.js';

/**
 * An index open for queries; call `close` after use. Its file is never changed. Images are returned as stored;
 * OpmateError INVALID for one with control characters, which is no reference and would break lists with one per line.
 */
export interface OpenedIndex {
  readonly name: string;
  /** Returns the images of all bundles, unique and sorted. */
  listImages(): string[];
  /** Returns the images of one bundle, unique and sorted. Throws OpmateError NOT_FOUND for an unknown name. */
  getImagesForBundle(name: string): string[];
  /** Returns name and pull specification of every bundle, by name; empty for a bundle that is in no registry. */
  listBundleReferences(): { name: string; image: string }[];
  close(): Promise<void>;
}

/** Opens a database file for image queries. Throws OpmateError, see `openForReading`. */
export async function openIndexFile(
  file: string,
  session: ReadSession,
  options?: ReadOptions,
): Promise<OpenedIndex> {
  const { database, close } = await openForReading(file, session, options);
  const queries = new IndexQueries(database);
  return {
    name: database.name,
    listImages: () => checkImages(queries, queries.allImages()),
    getImagesForBundle: (name) => checkImages(queries, imagesForBundle(queries, name)),
    listBundleReferences: () => {
      const bundles = queries.bundleReferences();
      checkImages(
        queries,
        bundles.map(({ image }) => image),
      );
      return bundles;
    },
    close,
  };
}

function checkImages(queries: IndexQueries, images: string[]): string[] {
  const bad = images.find((image) => /[\0-\x1f\x7f-\x9f\u2028\u2029]/.test(image));
  if (bad === undefined) return images;
  throw new OpmateError('INVALID', `image ${quoteGo(bad)}: has control characters`, {
    about: queries.name,
    hint: 'download the index again, or fix the image reference',
  });
}

function imagesForBundle(queries: IndexQueries, name: string): string[] {
  if (queries.findBundle(name) !== undefined) return queries.imagesOfBundle(name);
  const options = { prefix: `${queries.name}: `, file: queries.name };
  throw notFound('bundle', name, queries.bundleNames(), options);
}
