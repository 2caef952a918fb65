import path from 'node:path';
import { DirectoryCatalog } from '../../catalog/catalog.js';
import { findBreakingChanges } from '../../catalog/diff/breaking.js';
import { collectFacts } from '../../catalog/facts.js';
import {
  type Fragment,
  type IndexTree,
  addFragment,
  convertToJson,
  emptyTree,
  readFragment,
  removeDeprecations,
  removePackageDirectory,
  requireValidIndex,
  writeDeprecations,
} from '../../catalog/image/index-edit.js';
import { createFault, createWarning } from '../../core/diagnostic.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { logDiagnostic } from '../../core/log.js';
import { describeMissing, joinNames, suggestName } from '../../core/suggest.js';
import { openJsonFile } from '../../document/document.js';
import { listDirectory, statIfPresent } from '../../files/file-status.js';
import { makeDirectory } from '../../files/make-directory.js';
import { schemas } from '../../model/declarative-config.js';
import { type CatalogFacts, joinFacts } from '../../model/facts.js';
import { locateCatalog } from '../../mirror/selection/rebuilt-catalog.js';
import { extractImage } from '../../oci/image/image.js';
import { withImage } from '../../source/drivers/image.js';
import { parseSourceImage } from '../../source/parse-place.js';
import type { Session } from '../../source/session.js';
import { type EditCatalogImageOptions, type EditedCatalogImage, editIndexCatalog } from './edited-index.js';
import { listDatabasePackages, removeFromDatabase } from './hidden-database.js';

/** Fragments to add to an index image. */
export interface AddFragmentsOptions extends EditCatalogImageOptions {
  /** Packages that may be removed, or from which bundles without an upgrade may be. */
  allowPruning?: readonly string[] | undefined;
}

/**
 * Adds the packages of fragments to an index image: each directory of a fragment replaces that of the index. All platforms
 * get the same catalog in one new layer. Nothing is written if the catalog would be invalid, or if packages of replaced
 * directories would be gone or installed bundles be stranded, unless `allowPruning` has their package. Throws OpmateError.
 */
export async function addFragmentsToImage(
  index: string,
  fragments: readonly string[],
  session: Session,
  options: AddFragmentsOptions,
): Promise<EditedCatalogImage> {
  return editIndexCatalog(index, session, options, async ({ tree, database, directory }) => {
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
    const valid = await requireValidIndex(tree, session);
    requireKept(index, before, valid.facts, new Set(options.allowPruning));
    const known = new Set(before.packages.map(({ name }) => name));
    const left = new Set(valid.facts.packages.map(({ name }) => name));
    for (const name of known) if (!left.has(name)) changes.push(`removed package ${name}`);
    for (const name of packages) changes.push(`${known.has(name) ? 'replaced' : 'added'} package ${name}`);
    return { changes, valid };
  });
}

/**
 * Throws OpmateError if packages of replaced directories are gone, or bundles of theirs would be stranded, unless their
 * package is allowed.
 */
function requireKept(
  index: string,
  before: CatalogFacts,
  after: CatalogFacts,
  allowed: ReadonlySet<string>,
): void {
  const wanted = new Set(before.packages.map(({ name }) => name).filter((name) => !allowed.has(name)));
  const changes = findBreakingChanges(before, after, wanted);
  const listNames = (code: string, key: 'package' | 'bundle'): string =>
    joinNames([
      ...new Set(changes.filter((change) => change.code === code).map((change) => change[key] ?? '')),
    ]);
  const [removed, stranded] = [
    listNames('package-removed', 'package'),
    listNames('bundle-stranded', 'bundle'),
  ];
  const problems = [
    ...(removed === '' ? [] : [`packages would be removed: ${removed}`]),
    ...(stranded === '' ? [] : [`installed bundles would have no upgrade: ${stranded}`]),
  ];
  if (problems.length === 0) return;
  const hint = 'keep them, or add their packages to options.allowPruning';
  throw new DiagnosticsError(
    problems.map((problem) => createFault('pruned', problem, { subject: index, hint })),
    { code: 'INVALID' },
  );
}

/**
 * Removes packages from an index image, with their deprecations; `all` leaves an empty catalog. Packages that are not in the
 * index are warnings with the nearest name, and the image is built without them. Throws OpmateError.
 */
export async function removePackagesFromImage(
  index: string,
  packages: readonly string[] | 'all',
  session: Session,
  options: EditCatalogImageOptions,
): Promise<EditedCatalogImage> {
  return editIndexCatalog(index, session, options, async ({ tree, database }) => {
    if (packages === 'all') return { changes: await removeAll(tree, database, session), valid: undefined };
    const changes: string[] = [];
    const stored = await removeFromDatabase(database, packages, session);
    for (const name of packages) {
      if ((await removePackageDirectory(tree, name)) || stored.includes(name))
        changes.push(`removed package ${name}`);
      else {
        const entries = await listDirectory(tree.root);
        const known = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
        const details = { subject: index, hint: suggestName('package', name, known) };
        const problem = describeMissing('package', name);
        logDiagnostic(session.logger, createWarning('not-found', problem, details));
      }
    }
    // Index builds write the packages of the database, and with them the whole catalog, as JSON.
    if (stored.length > 0) await convertToJson(tree, session);
    return { changes, valid: await requireValidIndex(tree, session) };
  });
}

/** Empties a catalog and its database. */
async function removeAll(tree: IndexTree, database: string | undefined, session: Session): Promise<string[]> {
  const names = database === undefined ? [] : await listDatabasePackages(database, session);
  await removeFromDatabase(database, names, session);
  await emptyTree(tree);
  return ['removed all packages'];
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
  return editIndexCatalog(index, session, options, async ({ tree, database }) => {
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
    const changes = [`deprecations of package ${packageName}`];
    return { changes, valid: await requireValidIndex(tree, session) };
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
