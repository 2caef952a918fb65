import { type FileHandle, cp, open } from 'node:fs/promises';
import path from 'node:path';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { createFault, createWarning } from '../../core/diagnostic.js';
import { type CancelOptions, withOpen } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { groupBy } from '../../core/groups.js';
import { type Logger, logDiagnostic } from '../../core/log.js';
import { encodeGoJson } from '../../document/go-json.js';
import { lstatIfPresent, listDirectory, readdirIfPresent, statIfPresent } from '../../files/file-status.js';
import { makeDirectory } from '../../files/make-directory.js';
import { moveWhole } from '../../files/move-whole.js';
import { writeNewFile } from '../../files/write-new-file.js';
import { validateCatalog } from '../../graph/validate.js';
import { type CatalogDiagnostic, formatCatalogMessage } from '../../model/catalog-diagnostic.js';
import { schemas } from '../../model/declarative-config.js';
import { detach } from '../../model/describe.js';
import type { BlobOrigin, CatalogFacts } from '../../model/facts.js';
import { type Catalog, DirectoryCatalog } from '../catalog.js';
import { getBlobDirectory } from '../content/opm-cache-names.js';
import type { ChangedParts, OtherBlob } from '../content/previous-cache.js';
import { checkPackagePath } from '../directory-writer.js';
import { readDocuments } from '../documents.js';
import { openFile } from '../file-access.js';
import { collectFacts } from '../facts.js';
import type { Meta } from '../meta.js';

/** Directory of deprecations beside the packages of an index. (Source: release-engineering/iib.) */
const deprecationsDirectory = '_operator-deprecations-content';

/** Unpacked catalog of an index, changed in place; paths are relative to its root. */
export interface IndexTree {
  root: string;
  /** Name of the index in messages. */
  name: string;
  /** Directories whose content is replaced or removed. */
  replaced: Set<string>;
  /** Files that are replaced or removed, outside of these. */
  files: Set<string>;
  /** Directory for what is removed, whose packages change. */
  removed: string;
  /** Number of removals. */
  removals: number;
}

/** Catalog of an index after a change. */
export interface ValidIndex {
  catalog: Catalog;
  facts: CatalogFacts;
  others: OtherBlob[];
}

interface EditOptions extends CancelOptions {
  logger: Logger;
}

/** Unpacked fragment of a catalog. */
export interface Fragment {
  root: string;
  name: string;
}

/**
 * Returns the packages of a fragment by directory. Throws OpmateError for a fragment without packages, and for files
 * beside their directories.
 */
export async function readFragment(
  { root, name }: Fragment,
  options: EditOptions,
): Promise<Map<string, string[]>> {
  const entries = await listDirectory(root, { subject: name });
  if (entries.length === 0) {
    throw new OpmateError('INVALID', 'no packages', {
      subject: name,
      hint: 'use a fragment with a directory per package',
    });
  }
  const files = entries.filter((entry) => !entry.isDirectory()).map((entry) => quoteGo(entry.name));
  if (files.length > 0) {
    throw new OpmateError('INVALID', `files beside the directories of packages: ${files.join(', ')}`, {
      subject: name,
      hint: 'move them to the directory of their package',
    });
  }
  const facts = await collectFacts(new DirectoryCatalog(root, name), options);
  const byDirectory = groupBy(facts.packages, ({ origin }) => topOf(origin?.file ?? '', name));
  const packages = new Map<string, string[]>();
  for (const entry of entries) {
    const names = (byDirectory.get(entry.name) ?? []).map((item) => item.name);
    packages.set(entry.name, names);
    if (names.length === 0 && entry.name !== deprecationsDirectory) {
      const problem = `directory ${quoteGo(entry.name)} has no package`;
      const hint = 'remove it, or add the catalog of the package';
      logDiagnostic(options.logger, createWarning('directory-empty', problem, { subject: name, hint }));
    }
    for (const packageName of names) {
      if (packageName === entry.name) continue;
      const problem = `directory ${quoteGo(entry.name)} has package ${quoteGo(packageName)}`;
      const hint = 'use the name of the package';
      logDiagnostic(options.logger, createWarning('directory-name', problem, { subject: name, hint }));
    }
  }
  return packages;
}

function topOf(file: string, name: string): string {
  return toPlace(file, name).split('/')[0] as string;
}

/** Returns the path of a file in the catalog of this name. */
function toPlace(file: string, name: string): string {
  return file.startsWith(`${name}/`) ? file.slice(name.length + 1) : file;
}

/** Replaces whole directories of packages by those of a fragment. */
export async function addFragment(tree: IndexTree, { root }: Fragment): Promise<void> {
  for (const entry of await listDirectory(root)) {
    await removeDirectory(tree, entry.name);
    await cp(path.join(root, entry.name), path.join(tree.root, entry.name), { recursive: true });
    tree.replaced.add(entry.name);
  }
}

/** Removes the directories of a package, and its deprecations. Returns false if the index has neither. */
export async function removePackageDirectory(tree: IndexTree, packageName: string): Promise<boolean> {
  const hasContent = await removeDirectory(tree, packageName);
  const hasDeprecations = await removeDeprecations(tree, packageName);
  return hasContent || hasDeprecations;
}

/** Removes everything. */
export async function emptyTree(tree: IndexTree): Promise<void> {
  for (const entry of await listDirectory(tree.root)) {
    if (entry.isDirectory()) await removeDirectory(tree, entry.name);
    else {
      await setAside(tree, entry.name);
      tree.files.add(entry.name);
    }
  }
}

/** Replaces the directory of a package by a file `catalog.json`, which `write` fills. */
export async function replacePackage(
  tree: IndexTree,
  packageName: string,
  write: (file: FileHandle) => Promise<void>,
): Promise<void> {
  checkPackagePath(packageName);
  await removeDirectory(tree, packageName);
  const directory = path.join(tree.root, packageName);
  await makeDirectory(directory);
  tree.replaced.add(packageName);
  await withOpen(open(path.join(directory, 'catalog.json'), 'wx', 0o666), write);
}

/** Removes the deprecations of a package. Returns false if it has none. */
export async function removeDeprecations(tree: IndexTree, packageName: string): Promise<boolean> {
  const isRemoved = await removeDirectory(tree, `${deprecationsDirectory}/${packageName}`);
  const parent = path.join(tree.root, deprecationsDirectory);
  if (isRemoved && (await readdirIfPresent(parent)).length === 0)
    await removeDirectory(tree, deprecationsDirectory);
  return isRemoved;
}

async function removeDirectory(tree: IndexTree, directory: string): Promise<boolean> {
  const target = path.join(tree.root, directory);
  if ((await lstatIfPresent(target)) === undefined) return false;
  await setAside(tree, directory);
  tree.replaced.add(directory);
  return true;
}

async function setAside(tree: IndexTree, place: string): Promise<void> {
  const aside = path.join(tree.removed, String(tree.removals++), path.basename(place));
  await moveWhole(path.join(tree.root, place), aside);
}

/** Writes the deprecations of a package in place of older ones. */
export async function writeDeprecations(tree: IndexTree, packageName: string, text: string): Promise<void> {
  await removeDirectory(tree, `${deprecationsDirectory}/${packageName}`);
  const directory = path.join(tree.root, deprecationsDirectory, packageName);
  await makeDirectory(directory);
  await writeNewFile(path.join(directory, `${packageName}.json`), text);
  tree.replaced.add(`${deprecationsDirectory}/${packageName}`);
}

/** Rewrites all YAML files as JSON, as index builds do. Throws OpmateError for an empty file and for a taken name. */
export async function convertToJson(tree: IndexTree, options: CancelOptions): Promise<void> {
  const pending = [''];
  for (let parent = pending.pop(); parent !== undefined; parent = pending.pop()) {
    for (const entry of await listDirectory(path.join(tree.root, parent))) {
      const place = path.posix.join(parent, entry.name);
      if (entry.isDirectory()) pending.push(place);
      else if (/\.ya?ml$/.test(entry.name)) await convertFile(tree, place, options);
    }
  }
}

async function convertFile(tree: IndexTree, place: string, options: CancelOptions): Promise<void> {
  const target = place.replace(/\.ya?ml$/, '.json');
  const handle = await openFile(path.join(tree.root, place), place);
  let text = '';
  try {
    const { size } = await handle.stat();
    for await (const { value } of readDocuments({ handle, label: place, size }, options)) {
      if (value !== null) text += `${encodeGoJson(value, { indent: 4 })}\n`;
    }
  } finally {
    await handle.close();
  }
  const subject = `${tree.name}: ${place}`;
  if (text === '') throw new OpmateError('INVALID', 'empty YAML file', { subject, hint: 'remove it' });
  if ((await statIfPresent(path.join(tree.root, target))) !== undefined) {
    throw new OpmateError('INVALID', `would replace ${quoteGo(target)}`, {
      subject,
      hint: 'rename one of them',
    });
  }
  await writeNewFile(path.join(tree.root, target), text);
  await setAside(tree, place);
  tree.files.add(place).add(target);
}

/** Maximum number of problems of an invalid catalog in its error. */
const maxProblems = 20;

/** Returns the error for a catalog that would be invalid, with its first problems. */
function invalidCatalog(
  subject: string,
  message: string,
  problems: readonly CatalogDiagnostic[],
): OpmateError {
  const shown = problems.slice(0, maxProblems).map((problem) => {
    const text = `the catalog would be invalid: ${formatCatalogMessage(problem)}`;
    return createFault(problem.code, text, { subject, hint: problem.hint });
  });
  const more = problems.length - shown.length;
  if (more > 0) shown.push(createFault('more', `and ${more} more`, { subject }));
  if (shown.length > 0) return new DiagnosticsError(shown);
  return new OpmateError('INVALID', `the catalog would be invalid: ${message}`, { subject });
}

/** Reads a changed index. Throws OpmateError with all problems if it is invalid. */
export async function requireValidIndex(
  { root, name }: IndexTree,
  options: EditOptions,
): Promise<ValidIndex> {
  const catalog = new DirectoryCatalog(root, name);
  const others: OtherBlob[] = [];
  const onOther = (meta: Meta): void =>
    void others.push({ schema: detach(meta.schema), package: detach(meta.package), origin: meta.origin });
  const facts = await collectFacts(catalog, { ...options, onOther });
  const { message, problems } = validateCatalog(facts);
  if (message === undefined) return { catalog, facts, others };
  throw invalidCatalog(name, message, problems);
}

/** Reports whether a change has replaced or removed what is at a place. */
export function isReplaced({ files, replaced }: IndexTree, place: string): boolean {
  if (files.has(place)) return true;
  for (let slash = place.indexOf('/'); slash > 0; slash = place.indexOf('/', slash + 1))
    if (replaced.has(place.slice(0, slash))) return true;
  return false;
}

/**
 * Returns the packages whose blobs a change of an index has added, replaced or removed. Throws errors of reading, and of
 * names that a cache cannot have.
 */
export async function findChangedParts(
  tree: IndexTree,
  { facts, others }: ValidIndex,
  options: EditOptions,
): Promise<ChangedParts> {
  const packages = new Set<string>();
  const directories = new Set<string>();
  const { name } = tree;
  if (tree.removals > 0) {
    for await (const meta of new DirectoryCatalog(tree.removed, name).metas({ signal: options.signal })) {
      if (meta.schema === schemas.package) packages.add(detach(meta.name));
      else if (packageSchemas.has(meta.schema)) packages.add(detach(meta.package));
      else directories.add(getBlobDirectory(meta));
    }
  }
  const isChanged = (origin: BlobOrigin | undefined): boolean =>
    origin === undefined || isReplaced(tree, toPlace(origin.file, name));
  for (const item of facts.packages) if (isChanged(item.origin)) packages.add(item.name);
  for (const item of [...facts.channels, ...facts.bundles, ...facts.deprecations])
    if (isChanged(item.origin)) packages.add(item.package);
  for (const blob of others) if (isChanged(blob.origin)) directories.add(getBlobDirectory(blob));
  return { packages, directories };
}

const packageSchemas: ReadonlySet<string> = new Set([schemas.channel, schemas.bundle, schemas.deprecations]);
