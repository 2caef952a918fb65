import path from 'node:path';
import { type ListedFile, listFiles } from '../../bundle/image-files.js';
import { DirectoryCatalog } from '../../catalog/catalog.js';
import { findStranded } from '../../catalog/diff/breaking.js';
import { collectFacts } from '../../catalog/facts.js';
import {
  type Fragment,
  type IndexTree,
  addFragment,
  convertToJson,
  readFragment,
  removeDeprecations,
  removePackageDirectory,
  requireValidIndex,
  writeDeprecations,
} from '../../catalog/image/index-edit.js';
import { type LayerFile, type TarInput, writeLayer } from '../../archive/tar-writer.js';
import { toOpaqueMarker, toWhiteout } from '../../archive/whiteout.js';
import { withOpen } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { joinNames } from '../../core/suggest.js';
import { openJsonFile } from '../../document/document.js';
import { statIfPresent } from '../../files/file-status.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { makeDirectory } from '../../files/make-directory.js';
import { schemas } from '../../model/declarative-config.js';
import { type CatalogFacts, joinFacts } from '../../model/facts.js';
import { type ImageChanges, locateCatalog } from '../../mirror/selection/rebuilt-catalog.js';
import { type Image, extractImage } from '../../oci/image/image.js';
import { type BuiltImage, buildImage, openBases, readWholeConfig } from '../../oci/image/image-builder.js';
import { openReference } from '../../oci/image/open.js';
import { withImage } from '../../source/drivers/image.js';
import { parseSourceImage } from '../../source/parse-place.js';
import type { Session } from '../../source/session.js';
import { removePackages } from '../../sqlite/remove/remove.js';
import { type Database } from '../../sqlite/schema/database.js';
import { editDatabase } from '../../sqlite/schema/edit.js';
import { type ImageOutput, type StoredImage, checkImageOutput, putImages } from './image-output.js';

/** Options of edits of an index image. */
export interface EditCatalogImageOptions {
  /** Destinations, at least one. */
  outputs: readonly ImageOutput[];
}

/** Fragments to add to an index image. */
export interface AddFragmentsOptions extends EditCatalogImageOptions {
  /** Packages from which bundles without an upgrade may be removed. */
  allowPruning?: readonly string[] | undefined;
}

/** Index image that was made. */
export interface EditedCatalogImage {
  images: StoredImage[];
  /** One sentence per change. */
  changes: string[];
}

/** Database of packages that index builds keep beside the catalog. (Source: release-engineering/iib.) */
const hiddenDatabase = 'var/lib/iib/_hidden/do.not.edit.db';

/** An unpacked index. */
interface OpenedIndex {
  tree: IndexTree;
  /** File of the hidden database; undefined if the image has none. */
  database: string | undefined;
  directory: string;
}

/**
 * Adds the packages of fragments to an index image: each directory of a fragment replaces that of the index. All platforms
 * get the same catalog in one new layer. Nothing is written if the catalog would be invalid, or if installed bundles would
 * be stranded, unless `allowPruning` has their package. Throws OpmateError.
 */
export async function addFragmentsToImage(
  index: string,
  fragments: readonly string[],
  session: Session,
  options: AddFragmentsOptions,
): Promise<EditedCatalogImage> {
  return editImage(index, session, options, async ({ tree, database, directory }) => {
    const changes: string[] = [];
    const opened: Fragment[] = [];
    const packages = new Set<string>();
    const directories = new Set<string>();
    for (const [position, reference] of fragments.entries()) {
      const fragment = await unpackFragment(reference, path.join(directory, `fragment-${position}`), session);
      for (const [name, names] of await readFragment(fragment, session)) {
        directories.add(name);
        for (const packageName of names) packages.add(packageName);
      }
      opened.push(fragment);
    }
    const before = await readDirectories(tree, directories, session);
    for (const name of await removeFromDatabase(database, [...directories], session)) {
      await removeDeprecations(tree, name);
    }
    for (const fragment of opened) await addFragment(tree, fragment);
    const after = await requireValidIndex(tree, session);
    const allowed = new Set(options.allowPruning);
    const wanted = new Set([...packages].filter((name) => !allowed.has(name)));
    const stranded = new Set(findStranded(before, after, wanted).map(({ bundle = '' }) => bundle));
    if (stranded.size > 0) {
      const names = joinNames([...stranded]);
      throw new OpmateError('INVALID', `installed bundles would have no upgrade: ${names}`, {
        subject: index,
        hint: 'keep them, or allow pruning of their packages',
      });
    }
    const known = new Set(before.packages.map(({ name }) => name));
    for (const name of packages) changes.push(`${known.has(name) ? 'replaced' : 'added'} package ${name}`);
    return changes;
  });
}

/**
 * Removes packages from an index image, with their deprecations. A package that the index lacks is a warning. Throws
 * OpmateError.
 */
export async function removePackagesFromImage(
  index: string,
  packages: readonly string[],
  session: Session,
  options: EditCatalogImageOptions,
): Promise<EditedCatalogImage> {
  return editImage(index, session, options, async ({ tree, database }) => {
    const changes: string[] = [];
    const stored = await removeFromDatabase(database, packages, session);
    for (const name of packages) {
      if ((await removePackageDirectory(tree, name)) || stored.includes(name))
        changes.push(`removed package ${name}`);
      else session.logger.log('warn', `${index}: package ${quoteGo(name)} not found`);
    }
    // Index builds write the packages of the database, and with them the whole catalog, as JSON.
    if (stored.length > 0) await convertToJson(tree, session);
    await requireValidIndex(tree, session);
    return changes;
  });
}

/** Replaces the deprecations of a package in an index image by an `olm.deprecations` blob. Throws OpmateError. */
export async function deprecateInImage(
  index: string,
  schema: { text: string; file: string },
  session: Session,
  options: EditCatalogImageOptions,
): Promise<EditedCatalogImage> {
  const root = openJsonFile(schema.text, schema.file);
  root.field('schema').constant(schemas.deprecations);
  const packageName = root.field('package').text();
  return editImage(index, session, options, async ({ tree, database }) => {
    if (database !== undefined && !(await listDatabasePackages(database, session)).includes(packageName)) {
      throw new OpmateError(
        'NOT_FOUND',
        `package ${quoteGo(packageName)} is not built from the database of the index`,
        {
          subject: index,
          hint: 'add the deprecations to the fragment of the package',
        },
      );
    }
    await writeDeprecations(tree, packageName, schema.text);
    await requireValidIndex(tree, session);
    return [`deprecations of package ${packageName}`];
  });
}

/** Returns the facts of directories of an index, of which it may lack some. */
async function readDirectories(
  { root, name }: IndexTree,
  directories: ReadonlySet<string>,
  { logger, signal }: Session,
): Promise<CatalogFacts> {
  const parts: CatalogFacts[] = [];
  for (const directory of directories) {
    const place = path.join(root, directory);
    if ((await statIfPresent(place))?.isDirectory() !== true) continue;
    parts.push(await collectFacts(new DirectoryCatalog(place, `${name}/${directory}`), { logger, signal }));
  }
  return joinFacts(parts);
}

/** Unpacks an index, has `work` change it, and writes the image of the result. */
async function editImage(
  index: string,
  session: Session,
  { outputs }: EditCatalogImageOptions,
  work: (opened: OpenedIndex) => Promise<string[]>,
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
      await extractImage(base, unpacked, { roots, limits, logger, signal });
      const root = path.join(unpacked, place.directory);
      await makeDirectory(root);
      const tree: IndexTree = { root, name: index, replaced: new Set(), files: new Set() };
      const file = path.join(unpacked, hiddenDatabase);
      const database = (await statIfPresent(file))?.isFile() === true ? file : undefined;
      const changes = await work({ tree, database, directory });
      const { files, findings } = await listFiles(root, { label: index, limits, signal });
      const [finding] = findings;
      if (finding !== undefined) throw new OpmateError('INVALID', finding.problem, { subject: index });
      const cache = await writeCache(places, tree, files, session, directory);
      const built = await buildImages(bases, places, { tree, files, cache, database, directory }, session);
      const images: StoredImage[] = [];
      for (const output of outputs) images.push(await putImages(session, output, built, directory));
      return { images, changes };
    }),
  );
}

/** Unpacks a fragment: a directory stays where it is. */
async function unpackFragment(reference: string, directory: string, session: Session): Promise<Fragment> {
  if ((await statIfPresent(reference))?.isDirectory() === true) return { root: reference, name: reference };
  const { limits, logger, signal } = session;
  return withImage(await parseSourceImage(reference, session), session, async (image) => {
    const place = locateCatalog(image, logger);
    await extractImage(image, directory, { roots: [place.directory], limits, logger, signal });
    const root = path.join(directory, place.directory);
    await makeDirectory(root);
    return { root, name: reference };
  });
}

/** Removes packages from the hidden database; returns those that it had. */
async function removeFromDatabase(
  file: string | undefined,
  names: readonly string[],
  { signal }: Session,
): Promise<string[]> {
  if (file === undefined) return [];
  return editDatabase(file, { name: hiddenDatabase, signal }, async (database) => {
    const known = getPackageNames(database);
    const wanted = names.filter((name) => known.includes(name));
    if (wanted.length > 0) await removePackages(database, wanted, { signal });
    return wanted;
  });
}

async function listDatabasePackages(file: string, { signal }: Session): Promise<string[]> {
  return editDatabase(file, { name: hiddenDatabase, signal }, getPackageNames);
}

const getPackageNames = (database: Database): string[] =>
  database.all<{ name: string }>('SELECT name FROM package').map(({ name }) => name);

/** Writes the cache of `opm serve` if an image has one. */
async function writeCache(
  places: readonly ImageChanges[],
  { root, name }: IndexTree,
  catalogFiles: readonly ListedFile[],
  { logger, signal }: Session,
  directory: string,
): Promise<readonly TarFile[] | undefined> {
  if (places.every(({ caches }) => caches.length === 0)) return undefined;
  const { writeOpmCache } = await import('../../catalog/content/opm-cache.js');
  const file = path.join(directory, 'cache');
  return writeOpmCache(new DirectoryCatalog(root, name), { catalogFiles, file, logger, signal });
}

type TarFile = Pick<ListedFile, 'path' | 'file' | 'offset' | 'size'>;

interface IndexContent {
  tree: IndexTree;
  files: readonly ListedFile[];
  cache: readonly TarFile[] | undefined;
  database: string | undefined;
  directory: string;
}

async function buildImages(
  bases: readonly Image[],
  places: readonly ImageChanges[],
  content: IndexContent,
  { signal }: Session,
): Promise<BuiltImage[]> {
  const layers = new Map<string, LayerFile>();
  const images: BuiltImage[] = [];
  for (const [position, base] of bases.entries()) {
    const place = places[position] as ImageChanges;
    const key = JSON.stringify([place.directory, place.caches]);
    const file = path.join(content.directory, `layer-${layers.size}.tar.gz`);
    const layer = layers.get(key) ?? (await writeLayer(file, await listEntries(place, content), { signal }));
    layers.set(key, layer);
    const baseConfig = await readWholeConfig(base, { signal });
    images.push(await buildImage({ layers: [layer], base, baseConfig, platform: base.platform }));
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
  for (const place of cache === undefined ? [] : caches) {
    add({ path: toOpaqueMarker(place) });
    for (const { path: name, file, offset, size } of cache ?? []) {
      add({ path: `${place}/${name}`, content: { file, offset, size } });
    }
  }
  if (database !== undefined) {
    const size = (await statIfPresent(database))?.size ?? 0;
    add({ path: hiddenDatabase, content: { file: database, offset: 0, size } });
  }
  return [...entries.values()];
}

const isGone = (place: string, files: readonly ListedFile[]): boolean =>
  !files.some((file) => file.path.startsWith(`${place}/`));
