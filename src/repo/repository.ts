import path from 'node:path';
import { readdir } from 'node:fs/promises';
import { isBundleDirectory } from '../bundle/read.js';
import { addContext, combineErrors } from '../core/diagnostics-error.js';
import { OpmateError, throwFileError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { sortedByBytes } from '../core/order.js';
import { suggestOneOf } from '../core/suggest.js';
import { findNearest } from '../document/field.js';
import { outsideError } from '../files/directory-root.js';
import { lstatIfPresent, statIfPresent } from '../files/file-status.js';
import { readRegularFile } from '../files/read-file.js';

/*
 * Operator repositories: checkouts with `operators/OPERATOR/VERSION` bundles, `operators/OPERATOR/ci.yaml`,
 * `operators/OPERATOR/catalog-templates` and `catalogs/CATALOG/OPERATOR/catalog.yaml`. (Source: operator_repo of
 * redhat-openshift-ecosystem/operator-pipelines.)
 */

/** A checkout of an operator repository. */
export interface OperatorRepository {
  /** Directory as the user named it. */
  root: string;
}

/** Maximum number of operators, catalogs or bundles that a directory may have. */
const maxEntries = 100_000;

/** Names of a catalog file, in order of precedence. */
const catalogFileNames = ['catalog.yaml', 'catalog.yml', 'catalog.json'] as const;

/** Opens a checkout. Throws OpmateError NOT_FOUND if it has no directory `operators`. */
export async function openRepository(root: string): Promise<OperatorRepository> {
  const repository = { root };
  const operators = path.join(root, 'operators');
  const stats = await statIfPresent(operators);
  if (stats?.isDirectory() !== true) {
    throw new OpmateError('NOT_FOUND', 'not an operator repository: directory "operators" not found', {
      subject: root,
      hint: 'use the root of a checkout, with the directories operators and catalogs',
    });
  }
  return repository;
}

/** Returns the path of a file or directory of a repository, as messages name it. */
export function pathIn({ root }: OperatorRepository, ...parts: readonly string[]): string {
  return path.join(root, ...parts);
}

/** Returns the directories directly below a directory of the repository, sorted; none if it is missing. */
export async function listSubdirectories(
  repository: OperatorRepository,
  ...parts: readonly string[]
): Promise<string[]> {
  const directory = pathIn(repository, ...parts);
  const stats = await statIfPresent(directory);
  if (stats?.isDirectory() !== true) return [];
  const entries = await readdir(directory, { withFileTypes: true }).catch(throwFileError(directory));
  if (entries.length > maxEntries) {
    throw new OpmateError('LIMIT', `more than the maximum of ${maxEntries} entries`, { about: directory });
  }
  const names = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'));
  return sortedByBytes(names.map((entry) => entry.name));
}

/**
 * Returns the names of all operators: directories with a bundle or `ci.yaml`, and those that cannot be examined, so that
 * reading them reports why.
 */
export async function listOperators(repository: OperatorRepository): Promise<string[]> {
  const names: string[] = [];
  for (const name of await listSubdirectories(repository, 'operators')) {
    if (await isOperator(repository, name)) names.push(name);
  }
  return names;
}

async function isOperator(repository: OperatorRepository, name: string): Promise<boolean> {
  try {
    const config = await lstatIfPresent(pathIn(repository, 'operators', name, 'ci.yaml'));
    return config !== undefined || (await listBundleDirectories(repository, name)).length > 0;
  } catch (error) {
    if (error instanceof OpmateError) return true;
    throw error;
  }
}

/** Returns the directory names of the bundles of an operator: those with `manifests` and `metadata`. */
export async function listBundleDirectories(
  repository: OperatorRepository,
  operator: string,
): Promise<string[]> {
  const names: string[] = [];
  for (const name of await listSubdirectories(repository, 'operators', operator)) {
    if (await hasBundle(repository, operator, name)) names.push(name);
  }
  return names;
}

/** Reports whether `operators/OPERATOR/VERSION` is a bundle. */
export async function hasBundle(
  repository: OperatorRepository,
  operator: string,
  version: string,
): Promise<boolean> {
  const directory = pathIn(repository, 'operators', operator, version);
  return (await statIfPresent(directory))?.isDirectory() === true && isBundleDirectory(directory);
}

/** Throws OpmateError NOT_FOUND, with the nearest name, for operators that the repository lacks. */
export async function requireOperators(
  repository: OperatorRepository,
  operators: readonly string[],
): Promise<void> {
  const known = await listOperators(repository);
  const errors = operators
    .filter((name) => !known.includes(name))
    .map((name) => {
      const near = findNearest(name, known);
      return new OpmateError('NOT_FOUND', `operator ${quoteGo(name)} not found`, {
        subject: pathIn(repository, 'operators'),
        hint: near === undefined ? undefined : `did you mean ${quoteGo(near)}?`,
      });
    });
  if (errors.length > 0) throw combineErrors(errors);
}

/** Throws OpmateError NOT_FOUND for catalogs without a directory. */
export async function requireCatalogs(
  repository: OperatorRepository,
  catalogs: readonly string[],
): Promise<void> {
  const known = await listSubdirectories(repository, 'catalogs');
  const missing = catalogs.filter((name) => !known.includes(name));
  const [first] = missing;
  if (first === undefined) return;
  throw new OpmateError('NOT_FOUND', `catalog ${missing.map(quoteGo).join(', ')} not found`, {
    subject: pathIn(repository, 'catalogs'),
    hint: suggestCatalog(first, known),
  });
}

/** Returns the hint for an unknown catalog: the name with its `v`, else all names. */
export function suggestCatalog(name: string, known: readonly string[]): string | undefined {
  const choices = known.includes(`v${name}`) ? [`v${name}`] : known;
  return choices.length === 0 ? undefined : suggestOneOf(choices);
}

/** Returns the catalog file of an operator in a catalog, relative to the repository; undefined if it has none. */
export async function findCatalogFile(
  repository: OperatorRepository,
  catalog: string,
  operator: string,
): Promise<string | undefined> {
  for (const name of catalogFileNames) {
    const file = path.join('catalogs', catalog, operator, name);
    if (await isFile(pathIn(repository, file))) return file;
  }
  return undefined;
}

/** Returns the names of the catalogs that an operator is in. */
export async function listCatalogsOf(repository: OperatorRepository, operator: string): Promise<string[]> {
  const names: string[] = [];
  for (const catalog of await listSubdirectories(repository, 'catalogs')) {
    if ((await findCatalogFile(repository, catalog, operator)) !== undefined) names.push(catalog);
  }
  return names;
}

/**
 * Throws OpmateError UNSAFE for a file that a link leads out of the checkout: a pull request must not select files of this
 * machine.
 */
export async function requireInRepository({ root }: OperatorRepository, file: string): Promise<void> {
  const error = await outsideError(root, file);
  if (error !== undefined) throw addContext(error, { newHint: 'replace the link with its target' });
}

/**
 * Throws OpmateError for a place, relative to the checkout, that cannot be written: UNSAFE if a link leads its existing
 * parents out of the checkout, IO if one of them is a file.
 */
export async function requirePlaceInRepository(repository: OperatorRepository, place: string): Promise<void> {
  let parent = path.dirname(pathIn(repository, place));
  while (parent !== path.dirname(parent) && (await lstatIfPresent(parent)) === undefined) {
    parent = path.dirname(parent);
  }
  await requireInRepository(repository, parent);
  if ((await statIfPresent(parent))?.isDirectory() === true) return;
  throw new OpmateError('IO', 'is a file, not a directory', { about: parent });
}

/** Reads a file of the checkout. Throws OpmateError, UNSAFE for a link that leads out of it. */
export async function readInRepository(
  repository: OperatorRepository,
  file: string,
  maxBytes: number,
): Promise<Buffer> {
  await requireInRepository(repository, file);
  return readRegularFile(file, maxBytes).catch(throwFileError(file, { file }));
}

/** Reports whether a path is a regular file. */
export async function isFile(file: string): Promise<boolean> {
  return (await statIfPresent(file))?.isFile() === true;
}
