import path from 'node:path';
import { type ListedFile, listFiles } from '../../bundle/image-files.js';
import type { IndexTree, ValidIndex } from '../../catalog/image/index-edit.js';
import { type LayerFile, type TarInput, writeLayer } from '../../archive/tar-writer.js';
import { toOpaqueMarker, toWhiteout } from '../../archive/whiteout.js';
import { withOpen } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { compareOpenShift, openShiftMilestones, readOpenShiftVersion } from '../../core/openshift-version.js';
import { statIfPresent } from '../../files/file-status.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { makeDirectory } from '../../files/make-directory.js';
import { type ImageChanges, locateCatalog } from '../../mirror/selection/rebuilt-catalog.js';
import { type Image, extractImage } from '../../oci/image/image.js';
import { type BuiltImage, buildImage, openBases, readWholeConfig } from '../../oci/image/image-builder.js';
import { openReference } from '../../oci/image/open.js';
import { parseSourceImage } from '../../source/parse-place.js';
import type { Session } from '../../source/session.js';
import {
  type EditedCache,
  getChangesKey,
  listCacheEntries,
  listCacheRoots,
  readCache,
  writeEditedCache,
} from './edited-cache.js';
import { hiddenDatabase } from './hidden-database.js';
import { type ImageOutput, type StoredImage, checkImageOutput, putImages } from './image-output.js';

/** Options of edits of an index image. */
export interface EditCatalogImageOptions {
  /** Destinations, at least one. */
  outputs: readonly ImageOutput[];
}

/** Index image that was made. */
export interface EditedCatalogImage {
  images: StoredImage[];
  /** One sentence per change. */
  changes: string[];
}

/** An unpacked index. */
export interface UnpackedIndex {
  tree: IndexTree;
  /** File of the hidden database; undefined if the image has none. */
  database: string | undefined;
  /** Level of blobs that are rendered from the database. */
  migrationLevel: string;
  directory: string;
}

/** Result of a change. */
export interface ChangedIndex {
  /** One sentence per change. */
  changes: string[];
  /** The changed catalog, if it was read. */
  valid: ValidIndex | undefined;
}

/** Unpacks an index, has `work` change it, and writes the image of the result. */
export async function editIndexCatalog(
  index: string,
  session: Session,
  { outputs }: EditCatalogImageOptions,
  work: (opened: UnpackedIndex) => Promise<ChangedIndex>,
): Promise<EditedCatalogImage> {
  for (const output of outputs) await checkImageOutput(output);
  const { limits, logger, signal } = session;
  const reference = await parseSourceImage(index, session);
  return withTemporaryDirectory(session, async (directory) =>
    withOpen(openReference(reference, session), async ({ repository, reference: name }) => {
      const bases = await openBases(repository, name, session);
      const places = bases.map((base) => locateCatalog(base, logger));
      const [base, place] = [bases[0] as Image, places[0] as ImageChanges];
      const unpacked = path.join(directory, 'index');
      const roots = [place.directory, hiddenDatabase];
      const packed = { roots: listCacheRoots(places), file: path.join(directory, 'packed') };
      const extracted = await extractImage(base, unpacked, { roots, packed, limits, logger, signal });
      const [link] = extracted.links;
      if (link !== undefined) throw linkError(index, link);
      const root = path.join(unpacked, place.directory);
      await makeDirectory(root);
      const previous = await readCache(
        extracted,
        place,
        { bases, root, directory: path.join(directory, 'before') },
        session,
      );
      const tree = createTree(root, index, path.join(directory, 'removed'));
      const file = path.join(unpacked, hiddenDatabase);
      const database = (await statIfPresent(file))?.isFile() === true ? file : undefined;
      const migrationLevel = getMigrationLevel(base.labels);
      const { changes, valid } = await work({ tree, database, migrationLevel, directory });
      const { files, findings } = await listFiles(root, { label: index, limits, signal });
      const [finding] = findings;
      if (finding !== undefined) throw new OpmateError('INVALID', finding.problem, { subject: index });
      const content = { catalogFiles: files, previous, valid };
      const cache = places.some(({ caches }) => caches.length > 0)
        ? await writeEditedCache(tree, content, session, directory)
        : undefined;
      const layers = await writeLayers(places, { tree, files, cache, database, directory }, session);
      const images: StoredImage[] = [];
      for (const output of outputs) {
        // Tools that read layouts and archives know the form of OCI only.
        const keepsForm = output.to.transport === 'docker';
        const built = await buildImages(bases, layers, keepsForm, session);
        images.push(await putImages(session, output, built, directory));
      }
      return { images, changes };
    }),
  );
}

/** Returns the error for a link in place of a directory, which a layer with files below it would replace. */
function linkError(index: string, link: string): OpmateError {
  return new OpmateError(
    'UNSUPPORTED',
    `/${link}: symbolic link on the path of its catalog, cache or database`,
    {
      subject: index,
      hint: 'use an index image with directories in place of links',
    },
  );
}

function createTree(root: string, name: string, removed: string): IndexTree {
  return { root, name, replaced: new Set(), files: new Set(), removed, removals: 0 };
}

/** Label of an index with its OpenShift version. (Source: release-engineering/iib.) */
const versionLabel = 'com.redhat.index.delivery.version';

/** Returns the level of blobs of an index: of old versions, bundles keep their objects. */
function getMigrationLevel(labels: Readonly<Record<string, string>>): string {
  const version = readOpenShiftVersion(labels[versionLabel] ?? '');
  const isOld = version !== undefined && compareOpenShift(version, openShiftMilestones.csvMetadata) < 0;
  return isOld ? 'none' : 'bundle-object-to-csv-metadata';
}

interface IndexContent {
  tree: IndexTree;
  files: readonly ListedFile[];
  cache: EditedCache | undefined;
  database: string | undefined;
  directory: string;
}

/** Writes the layer of each image; images with the same directories share it. */
async function writeLayers(
  places: readonly ImageChanges[],
  content: IndexContent,
  { signal }: Session,
): Promise<LayerFile[]> {
  const layers = new Map<string, LayerFile>();
  const all: LayerFile[] = [];
  for (const place of places) {
    const key = getChangesKey(place);
    const file = path.join(content.directory, `layer-${layers.size}.tar.gz`);
    const layer = layers.get(key) ?? (await writeLayer(file, await listEntries(place, content), { signal }));
    layers.set(key, layer);
    all.push(layer);
  }
  return all;
}

async function buildImages(
  bases: readonly Image[],
  layers: readonly LayerFile[],
  keepsForm: boolean,
  { signal }: Session,
): Promise<BuiltImage[]> {
  const images: BuiltImage[] = [];
  for (const [position, base] of bases.entries()) {
    const baseConfig = await readWholeConfig(base, { signal });
    const layer = layers[position] as LayerFile;
    const { platform } = base;
    images.push(await buildImage({ layers: [layer], base, baseConfig, platform, keepsForm }));
  }
  return images;
}

/** Returns the entries of the layer: whiteouts of what goes, and what replaces it. */
async function listEntries(
  { directory, caches }: ImageChanges,
  { tree, files, cache, database }: IndexContent,
): Promise<TarInput[]> {
  const entries = new Map<string, TarInput>();
  const add = (entry: TarInput): void => void entries.set(entry.path, entry);
  for (const place of tree.replaced) {
    const own = files.filter((file) => file.path.startsWith(`${place}/`));
    if (own.length > 0) add({ path: toOpaqueMarker(`${directory}/${place}`) });
    else if (![...tree.replaced].some((other) => place.startsWith(`${other}/`) && isGone(other, files))) {
      add({ path: toWhiteout(`${directory}/${place}`) });
    }
    for (const { path: name, file, offset, size } of own) {
      add({ path: `${directory}/${name}`, content: { file, offset, size } });
    }
  }
  for (const place of tree.files) {
    const found = files.find((file) => file.path === place);
    if (found === undefined) add({ path: toWhiteout(`${directory}/${place}`) });
    else
      add({
        path: `${directory}/${place}`,
        content: { file: found.file, offset: found.offset, size: found.size },
      });
  }
  if (cache !== undefined) for (const place of caches) listCacheEntries(place, cache).forEach(add);
  if (database !== undefined) {
    const size = (await statIfPresent(database))?.size ?? 0;
    add({ path: hiddenDatabase, content: { file: database, offset: 0, size } });
  }
  return [...entries.values()];
}

const isGone = (place: string, files: readonly ListedFile[]): boolean =>
  !files.some((file) => file.path.startsWith(`${place}/`));
