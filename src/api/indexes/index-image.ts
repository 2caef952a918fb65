import { withOpen } from '../../core/concurrency.js';
import path from 'node:path';
import { OpmateError } from '../../core/errors.js';
import { parseReference } from '../../core/reference.js';
import { statIfPresent } from '../../files/file-status.js';
import { replaceFiles, requireParentDirectory } from '../../files/replace-file.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { withImage } from '../../source/drivers/image.js';
import type { Session } from '../../source/session.js';
import {
  buildIndexImages,
  defaultBinaryImage,
  extractDatabase,
  indexDockerfile,
  settleDatabase,
} from '../../sqlite/read/index-image.js';
import { openDatabase } from '../../sqlite/schema/database.js';
import { editDatabase } from '../../sqlite/schema/edit.js';
import {
  type ImageOutput,
  type StoredImage,
  checkImageOutput,
  openBase,
  putImages,
  requireReferrers,
} from '../images/image-output.js';
import { type AddToIndexOptions, type AddedBundles, addToIndex } from './add-to-index.js';
import {
  type ChangeReports,
  type IndexChange,
  type IndexChangeKind,
  applyIndexChange,
} from './edit-index.js';

/** Base image and output of an index image. */
export interface IndexImageOptions {
  /** Registry, layout or archive that the image is written to, or the Dockerfile to write in place of an image. */
  output: ImageOutput | IndexDockerfile;
  /** Base image, in a registry or layout, or `scratch`; default `quay.io/operator-framework/opm:v1.73.0`. */
  binaryImage?: string | undefined;
}

/** Files that a container engine builds an index image from: this Dockerfile, and `database/index.db`. */
export interface IndexDockerfile {
  dockerfile: string;
}

/** Options of the verbs that change an index and make an image of the result. */
export interface EditIndexImageOptions<R> extends IndexImageOptions {
  /** Image of the index to change, which stays as it is; default: an empty index. */
  fromIndex?: string | undefined;
  /** Called with the result of the change, and the name of the index in messages, before the image is built. */
  onEdited?: ((result: R, name: string) => void) | undefined;
}

/** Index image that was made. */
export interface MadeIndexImage {
  /** Undefined if a Dockerfile was written. */
  image: StoredImage | undefined;
  /** Files that were written in place of an image. */
  files: string[];
}

/** Result of changing an index, and the image that was made of it. */
export interface EditedIndexImage<R> extends MadeIndexImage {
  result: R;
}

/** A database that becomes an image. */
interface IndexFile {
  /** A private copy. */
  file: string;
  /** Name in messages. */
  name: string;
}

/**
 * Changes the database of an index image in one transaction, as `editIndex` does, and makes an image of the result:
 * pushed, saved, or as a Dockerfile. When the change fails, nothing is pushed or written. Equal databases make equal
 * images.
 *
 * Throws OpmateError: what pulling, the change and pushing throw; UsageError for an output that cannot be written to.
 */
export async function editIndexImage<K extends IndexChangeKind>(
  change: IndexChange<K>,
  session: Session,
  options: EditIndexImageOptions<ChangeReports[K]>,
): Promise<EditedIndexImage<ChangeReports[K]>> {
  const { signal } = session;
  const create = options.fromIndex === undefined;
  return makeIndexImage(session, options, ({ file, name }) =>
    editDatabase(file, { create, name, signal }, (database) => applyIndexChange(database, change, session)),
  );
}

/**
 * Adds bundles to an index image, or to a new one, as `addToIndex` does to a database file, and makes an image of the
 * result. Without bundles the database is migrated to the latest schema only. Throws what `editIndexImage` and
 * `addToIndex` throw.
 */
export async function addToIndexImage(
  references: readonly string[],
  session: Session,
  options: AddToIndexOptions & EditIndexImageOptions<AddedBundles>,
): Promise<EditedIndexImage<AddedBundles>> {
  const { output, binaryImage, fromIndex, onEdited, ...add } = options;
  const image = { output, binaryImage, fromIndex, onEdited };
  return makeIndexImage(session, image, ({ file, name }) =>
    addToIndex(file, references, session, { ...add, name }),
  );
}

/**
 * Makes the image of a database file, which stays as it is; an older schema is migrated in the image. Throws what
 * `editIndexImage` throws.
 */
export async function buildIndexImage(
  database: string,
  session: Session,
  options: IndexImageOptions,
): Promise<MadeIndexImage> {
  const { signal } = session;
  const copy = ({ file }: IndexFile): Promise<void> =>
    editDatabase(database, { outputFile: file, signal }, () => undefined);
  const { image, files } = await makeIndexImage(session, options, copy, database);
  return { image, files };
}

/** Has `work` make or change a database, and makes an image of it. Messages name a new index `newName`. */
async function makeIndexImage<R>(
  session: Session,
  options: EditIndexImageOptions<R>,
  work: (index: IndexFile) => Promise<R>,
  newName = 'new index',
): Promise<EditedIndexImage<R>> {
  const { output, fromIndex, onEdited } = options;
  if ('dockerfile' in output) await requireParentDirectory(output.dockerfile);
  else {
    if (output.signingKey !== undefined) requireReferrers('signingKey', [output], 'signatures');
    await checkImageOutput(output);
  }
  return withTemporaryDirectory(session, async (directory) => {
    const index = await takeDatabase(session, fromIndex, directory, newName);
    const result = await work(index);
    onEdited?.(result, index.name);
    await settleDatabase(index.file, index.name);
    return { ...(await writeOutput(session, options, index.file, directory)), result };
  });
}

async function takeDatabase(
  session: Session,
  fromIndex: string | undefined,
  directory: string,
  newName: string,
): Promise<IndexFile> {
  if (fromIndex === undefined) return { file: path.join(directory, 'index.db'), name: newName };
  if ((await statIfPresent(fromIndex))?.isFile() === true) {
    throw new OpmateError('INVALID', `${fromIndex}: is a file, not an index image`, {
      file: fromIndex,
      hint:
        'edit a database file with api.editIndex add, rm or prune, then create its image with api.buildIndexImage; ' +
        'use oci-archive:FILE for an image in an archive',
    });
  }
  const file = await pullDatabase(fromIndex, path.join(directory, 'from-index'), session);
  // Ends what a writer has left unfinished, and fails for what is no database before any bundle is pulled.
  (await openDatabase(file, { access: 'write', name: fromIndex })).close();
  return { file, name: fromIndex };
}

/** Unpacks the database of an index image into a new directory; returns its file. Throws OpmateError. */
export async function pullDatabase(reference: string, directory: string, session: Session): Promise<string> {
  if ((await statIfPresent(reference))?.isDirectory()) {
    throw new OpmateError('INVALID', 'is a directory, neither an index image nor a database', {
      subject: reference,
      hint: `use oci:${reference} for an image in a layout directory`,
    });
  }
  return withImage(parseReference(reference), session, (image) => extractDatabase(image, directory, session));
}

/** Path of the database in the build context of a Dockerfile. */
const generatedDatabase = 'database/index.db';

async function writeOutput(
  session: Session,
  { output, binaryImage }: IndexImageOptions,
  file: string,
  directory: string,
): Promise<MadeIndexImage> {
  const { signal, platform } = session;
  if ('dockerfile' in output) {
    const { dockerfile } = output;
    const text = indexDockerfile(binaryImage || defaultBinaryImage, generatedDatabase);
    // The user of the container must be able to read the database.
    const database = { target: generatedDatabase, copyOf: file, mode: 0o644 };
    await replaceFiles([database, { target: dockerfile, text }], { signal });
    return { image: undefined, files: [generatedDatabase, dockerfile] };
  }
  return withOpen(openBase(session, binaryImage, 'options.binaryImage'), async (base) => {
    const images = await buildIndexImages(file, { bases: base.images, platform, directory, signal });
    return { image: await putImages(session, output, images, directory), files: [] };
  });
}
