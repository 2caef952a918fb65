import path from 'node:path';
import { emptyTree, requireValidIndex } from '../../catalog/image/index-edit.js';
import { mapConcurrent, withOpen } from '../../core/concurrency.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { createFault, createWarning } from '../../core/diagnostic.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { logDiagnostic } from '../../core/log.js';
import {
  type OpenShiftVersion,
  formatOpenShift,
  openShiftVersionsLabel,
} from '../../core/openshift-version.js';
import { listDirectory, statIfPresent } from '../../files/file-status.js';
import { extractImage } from '../../oci/image/image.js';
import { evaluateVersionsLabel, readVersionsLabel } from '../../core/openshift-limits.js';
import { stageBundles } from '../../source/bundles.js';
import { withImage } from '../../source/drivers/image.js';
import { parseSourceImage } from '../../source/parse-place.js';
import type { Session } from '../../source/session.js';
import { addBundles } from '../../sqlite/add/add.js';
import { type BundleOfImage, listBundleImages } from '../../sqlite/read/bundle-images.js';
import { deprecateTruncate } from '../../sqlite/remove/deprecate.js';
import { digestOf, missingDatabase } from './add-bundles-to-image.js';
import { type EditCatalogImageOptions, type EditedCatalogImage, editIndexCatalog } from './edited-index.js';
import {
  editHiddenDatabase,
  hiddenDatabase,
  listDatabasePackages,
  renderDatabasePackages,
} from './hidden-database.js';

/** Hint for an index without a database. */
const mergeHint =
  'use indexes with a database, or add fragments to a file-based one with api.addFragmentsToImage';

/** Options of `mergeIndexImages`. */
export interface MergeIndexImagesOptions extends EditCatalogImageOptions {
  /** OpenShift version of the new index. */
  openshift: OpenShiftVersion;
  /** Images of bundles to deprecate. */
  deprecated?: readonly string[] | undefined;
  /** Labels `com.redhat.openshift.versions` by bundle image; others are read from the images. */
  labels?: ReadonlyMap<string, string> | undefined;
  /** Include bundles without the label. */
  allowMissing?: boolean | undefined;
  /** Drop packages that are not built from the database, as index builds do. */
  databaseOnly?: boolean | undefined;
}

/**
 * Adds the bundles that `target`, the released index of the next OpenShift version, has beyond `source`, to the image of
 * `source`; bundles are those of the hidden databases. Bundles whose label excludes the version are deprecated. Throws
 * OpmateError, also for bundles without a digest.
 */
export async function mergeIndexImages(
  source: string,
  target: string,
  session: Session,
  options: MergeIndexImagesOptions,
): Promise<EditedCatalogImage> {
  return editIndexCatalog(source, session, options, async ({ tree, database, migrationLevel, directory }) => {
    if (database === undefined) throw missingDatabase(source, mergeHint);
    const other = await readTarget(target, path.join(directory, 'target'), session);
    const own = await editHiddenDatabase(database, session, listBundleImages);
    requireDigests(source, own);
    requireDigests(target, other);
    const missing = listMissing(own, other);
    const lost = options.databaseOnly === true ? await listFragments(tree.root, database, session) : [];
    const changes = await withOpen(stageBundles(missing, session, { requireDigest: true }), (stage) =>
      editHiddenDatabase(database, session, async (opened) => {
        const { logger, signal } = session;
        const add = { mode: 'replaces' as const, enableAlpha: true, logger, signal };
        const { added } = await addBundles(opened, stage.bundles, add);
        const images = listBundleImages(opened);
        const excluded = await listExcluded([...images.keys()], session, options);
        const listed = (options.deprecated ?? []).filter((image) => images.has(image));
        const wanted = [...new Set([...excluded, ...listed])];
        const report = await deprecateTruncate(opened, wanted, { allowPackageRemoval: true, signal });
        return [
          ...added.map((name) => `added bundle ${name}`),
          ...report.deprecated.map((name) => `deprecated bundle ${name}`),
          ...report.packages.map((name) => `removed package ${name}`),
        ];
      }),
    );
    const packages = new Set([...own.values(), ...other.values()].map((bundle) => bundle.package));
    if (options.databaseOnly === true) await emptyTree(tree);
    await renderDatabasePackages(tree, database, packages, migrationLevel, session);
    const valid = await requireValidIndex(tree, session);
    if (lost.length > 0) {
      const problem = `packages of fragments are not kept: ${lost.map(quoteGo).join(', ')}`;
      const hint = 'add their fragments to the new index';
      logDiagnostic(session.logger, createWarning('fragments-lost', problem, { subject: source, hint }));
    }
    return { changes, valid };
  });
}

/** Returns the bundles in the hidden database of an index image. */
async function readTarget(
  target: string,
  directory: string,
  session: Session,
): Promise<Map<string, BundleOfImage>> {
  const { limits, logger, signal } = session;
  await withImage(await parseSourceImage(target, session), session, (image) =>
    extractImage(image, directory, { roots: [hiddenDatabase], limits, logger, signal }),
  );
  const file = path.join(directory, hiddenDatabase);
  if ((await statIfPresent(file))?.isFile() !== true) throw missingDatabase(target, mergeHint);
  return editHiddenDatabase(file, session, listBundleImages);
}

function requireDigests(index: string, bundles: ReadonlyMap<string, BundleOfImage>): void {
  const faults = [...bundles]
    .filter(([image]) => !/@sha256:[0-9a-f]{64}$/.test(image))
    .map(([image, { name }]) => {
      const problem = `bundle ${quoteGo(name)}: image ${quoteGo(image)} has no digest`;
      return createFault('bundle-image-tag', problem, { subject: index, hint: 'add the bundle by digest' });
    });
  if (faults.length > 0) throw new DiagnosticsError(faults);
}

/** Returns the images of bundles whose digest and name the source lacks. */
function listMissing(
  own: ReadonlyMap<string, BundleOfImage>,
  other: ReadonlyMap<string, BundleOfImage>,
): string[] {
  const digests = new Set([...own.keys()].map(digestOf));
  const names = new Set([...own.values()].map(({ name }) => name));
  return [...other].flatMap(([image, { name }]) =>
    digests.has(digestOf(image)) || names.has(name) ? [] : [image],
  );
}

/** Returns the images of bundles that their label excludes from the version. */
async function listExcluded(
  images: readonly string[],
  session: Session,
  { labels, openshift, allowMissing = false }: MergeIndexImagesOptions,
): Promise<string[]> {
  const version = formatOpenShift(openshift);
  const verdicts = await mapConcurrent(
    images,
    8,
    async (image) => {
      const label = labels?.get(image) ?? (await readLabel(image, session));
      if (label === '' && allowMissing) return [];
      const { isIncluded, reason } = evaluateVersionsLabel(readVersionsLabel(label), version);
      if (isIncluded) return [];
      session.logger.log('info', `${image}: not for OpenShift ${version}: ${reason}`);
      return [image];
    },
    session,
  );
  return verdicts.flat();
}

async function readLabel(image: string, session: Session): Promise<string> {
  return withImage(image, session, ({ labels }) => Promise.resolve(labels[openShiftVersionsLabel] ?? ''));
}

/** Returns the directories of packages that are not built from the database. */
async function listFragments(root: string, database: string, session: Session): Promise<string[]> {
  const stored = new Set(await listDatabasePackages(database, session));
  const entries = await listDirectory(root);
  return entries.flatMap((entry) => (entry.isDirectory() && !stored.has(entry.name) ? [entry.name] : []));
}
