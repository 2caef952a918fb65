import { listDirectory } from '../../files/file-status.js';
import type { AddMode } from '../../catalog/edit/plan-add.js';
import { type IndexTree, convertToJson, requireValidIndex } from '../../catalog/image/index-edit.js';
import { mapConcurrent, withOpen } from '../../core/concurrency.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import { pinReference } from '../../source/place.js';
import { openReference } from '../../oci/image/open.js';
import { missingImageHint } from '../../oci/registry/registry-request.js';
import { parseBundleReference, stageBundles } from '../../source/bundles.js';
import type { Session } from '../../source/session.js';
import { addBundles } from '../../sqlite/add/add.js';
import type { StagedBundle } from '../../sqlite/add/stage.js';
import { listBundleImages } from '../../sqlite/read/bundle-images.js';
import { deprecateTruncate } from '../../sqlite/remove/deprecate.js';
import { addToCatalog } from '../edit-catalog.js';
import { type EditCatalogImageOptions, type EditedCatalogImage, editIndexCatalog } from './edited-index.js';
import { editHiddenDatabase, listDatabasePackages, renderDatabasePackages } from './hidden-database.js';

/** Bundles to add to an index image. */
export interface AddBundlesToImageOptions extends EditCatalogImageOptions {
  /** Source of edges; default `replaces`. */
  mode?: AddMode | undefined;
  /** Replace the head of a channel by a bundle of the same name. */
  overwriteLatest?: boolean | undefined;
  /** Images of bundles to deprecate, which truncates what they replace; needs a database in the index. */
  deprecated?: readonly string[] | undefined;
}

/**
 * Adds bundles of registries to an index image. Packages of its hidden database, and new ones if it has a database, are
 * added there and rendered again; others are edited in the catalog. A bundle whose digest the database has is left out.
 * Nothing is written if the catalog would be invalid. Throws OpmateError.
 */
export async function addBundlesToImage(
  index: string,
  references: readonly string[],
  session: Session,
  options: AddBundlesToImageOptions,
): Promise<EditedCatalogImage> {
  const { mode = 'replaces', overwriteLatest = false, deprecated = [] } = options;
  const images = await pinBundles(references, session);
  return editIndexCatalog(index, session, options, async ({ tree, database, migrationLevel }) => {
    if (database === undefined) {
      if (deprecated.length > 0) {
        const hint = 'deprecate bundles of a file-based catalog with an olm.deprecations blob';
        throw missingDatabase(index, hint);
      }
      const changes = await addToTree(tree, images, session, { mode, overwriteLatest });
      return { changes, valid: await requireValidIndex(tree, session) };
    }
    const stored = await editHiddenDatabase(database, session, listBundleImages);
    const digests = new Set([...stored.keys()].map(digestOf));
    const missing = images.filter((image) => !digests.has(digestOf(image)));
    const stage = stageBundles(missing, session, { requireDigest: true });
    return withOpen(stage, async ({ bundles }) => {
      const opted = await listOptedIn(tree, database, session);
      const isOpted = ({ record }: StagedBundle): boolean => opted.has(record.packageName);
      const changes = await addToDatabase(
        database,
        bundles.filter((item) => !isOpted(item)),
        {
          session,
          mode,
          overwriteLatest,
          deprecated,
        },
      );
      await renderDatabasePackages(tree, database, changes.packages, migrationLevel, session);
      const ownImages = bundles.filter(isOpted).map(({ reference }) => reference);
      const own = await addToTree(tree, ownImages, session, { mode, overwriteLatest });
      // Index builds write the packages of the database, and with them the whole catalog, as JSON.
      await convertToJson(tree, session);
      const valid = await requireValidIndex(tree, session);
      return { changes: [...changes.sentences, ...own], valid };
    });
  });
}

/** Returns the digest of a bundle image of an index. */
export const digestOf = (image: string): string => image.slice(image.lastIndexOf('@') + 1);

/** Returns the references with digests, as indexes record them. */
async function pinBundles(references: readonly string[], session: Session): Promise<string[]> {
  return mapConcurrent(
    references,
    8,
    async (text) => {
      const reference = parseBundleReference(text, { requireDigest: false });
      if (reference.transport !== 'docker') {
        const hint = 'push the bundle: an index names its image in a registry';
        throw new UsageError('is not an image of a registry', { subject: text, hint });
      }
      if (reference.digest !== undefined) return text;
      return withOpen(openReference(reference, session), async ({ repository, reference: name }) => {
        const descriptor = await repository.headManifest(name, session);
        if (descriptor !== undefined) return pinReference(reference, descriptor.digest).text;
        throw new OpmateError('NOT_FOUND', 'not found', { subject: text, hint: missingImageHint });
      });
    },
    session,
  );
}

/** Returns the error for a change of the database of an index without one. */
export function missingDatabase(index: string, hint: string): OpmateError {
  return new OpmateError('UNSUPPORTED', 'has no database of bundles', { subject: index, hint });
}

/** Returns the packages that an index has beside its database. */
async function listOptedIn(tree: IndexTree, database: string, session: Session): Promise<Set<string>> {
  const stored = new Set(await listDatabasePackages(database, session));
  const entries = await listDirectory(tree.root);
  const directories = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  return new Set(directories.filter((name) => !stored.has(name)));
}

interface DatabaseAddition {
  session: Session;
  mode: AddMode;
  overwriteLatest: boolean;
  deprecated: readonly string[];
}

/** Adds and deprecates bundles of a database in one transaction; returns the packages that it changes. */
async function addToDatabase(
  file: string,
  bundles: readonly StagedBundle[],
  { session, mode, overwriteLatest, deprecated }: DatabaseAddition,
): Promise<{ packages: Set<string>; sentences: string[] }> {
  const { logger, signal } = session;
  const packages = new Set(bundles.map(({ record }) => record.packageName));
  const sentences: string[] = [];
  await editHiddenDatabase(file, session, async (database) => {
    const add = { mode, overwriteLatest, enableAlpha: true, logger, signal };
    const { added } = await addBundles(database, bundles, add);
    for (const name of added) sentences.push(`added bundle ${name}`);
    const stored = listBundleImages(database);
    const wanted = deprecated.filter((image) => stored.has(image));
    for (const image of deprecated) {
      if (!stored.has(image))
        logger.log('warn', `${image}: not deprecated: not in the database of the index`);
    }
    for (const image of wanted) packages.add(stored.get(image)?.package ?? '');
    const report = await deprecateTruncate(database, wanted, { allowPackageRemoval: true, signal });
    for (const name of report.deprecated) sentences.push(`deprecated bundle ${name}`);
    for (const name of report.packages) sentences.push(`removed package ${name}`);
  });
  return { packages, sentences };
}

/** Adds bundles to the files of the catalog. */
async function addToTree(
  tree: IndexTree,
  images: readonly string[],
  session: Session,
  { mode, overwriteLatest }: { mode: AddMode; overwriteLatest: boolean },
): Promise<string[]> {
  if (images.length === 0) return [];
  const options = { mode, overwrite: overwriteLatest, name: tree.name, target: 'index' as const };
  const { changes, files } = await addToCatalog(tree.root, images, session, options);
  for (const { name } of files) tree.files.add(name);
  return changes;
}
