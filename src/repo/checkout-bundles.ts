import path from 'node:path';
import { readBundleDirectory } from '../bundle/read.js';
import { mapConcurrent } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import { getOrAdd } from '../core/groups.js';
import { findReference } from '../core/reference.js';
import { getText } from '../document/json-fields.js';
import type { BundleBlob } from '../model/declarative-config.js';
import { renderBundleSource } from '../source/render.js';
import type { SourceSession } from '../source/session.js';
import { listCatalogBundles } from './catalog-bundles.js';
import { readCheckedBundle } from './checks/bundle-model.js';
import { readCiConfig } from './ci-config.js';
import {
  type OperatorRepository,
  findCatalogFile,
  listBundleDirectories,
  listCatalogsOf,
  listOperators,
  pathIn,
} from './repository.js';
import { listTemplateImages } from './template-images.js';

/** Bundle directories of an operator. */
interface BundleDirectories {
  /** By the name of their ClusterServiceVersion. */
  byName: Map<string, string>;
  /** By the name of the directory. */
  byVersion: Map<string, string>;
}

/**
 * Returns the bundle directories of a checkout by image. What names the bundle of an image is, in order of precedence:
 * committed catalogs, the entry of a basic template if it has a name, and a reference `…/OPERATOR:VERSION`, as release
 * pipelines push them. Other images, and unreadable files, are omitted.
 */
export async function findCheckoutBundles(
  repository: OperatorRepository,
  session: SourceSession,
  operators?: readonly string[],
): Promise<Map<string, string>> {
  const names = operators ?? (await listOperators(repository));
  const found = await mapConcurrent(
    names,
    4,
    (operator) => findBundlesOf(repository, session, operator),
    session,
  );
  return new Map(found.flat());
}

async function findBundlesOf(
  repository: OperatorRepository,
  session: SourceSession,
  operator: string,
): Promise<[image: string, directory: string][]> {
  const directories: BundleDirectories = { byName: new Map(), byVersion: new Map() };
  for (const version of await listBundleDirectories(repository, operator)) {
    const directory = pathIn(repository, 'operators', operator, version);
    directories.byVersion.set(version, directory);
    const bundle = await readCheckedBundle(repository, operator, version);
    const name = await ifReadable(() => getText(bundle.getCsv().value, 'metadata', 'name'));
    if (name) directories.byName.set(name, directory);
  }
  if (directories.byVersion.size === 0) return [];
  const inTemplates = await findInTemplates(repository, session, operator, directories);
  const inCatalogs = await findInCatalogs(repository, session, operator, directories);
  return [...inTemplates, ...inCatalogs];
}

async function findInCatalogs(
  repository: OperatorRepository,
  session: SourceSession,
  operator: string,
  { byName }: BundleDirectories,
): Promise<[image: string, directory: string][]> {
  const images: [string, string][] = [];
  for (const catalog of await listCatalogsOf(repository, operator)) {
    const file = await findCatalogFile(repository, catalog, operator);
    if (file === undefined) continue;
    const bundles = await ifReadable(() => listCatalogBundles(path.join(repository.root, file), session));
    for (const { image, name } of bundles ?? []) {
      const directory = byName.get(name);
      if (directory !== undefined) images.push([image, directory]);
    }
  }
  return images;
}

async function findInTemplates(
  repository: OperatorRepository,
  session: SourceSession,
  operator: string,
  { byName, byVersion }: BundleDirectories,
): Promise<[image: string, directory: string][]> {
  const config = await ifReadable(() => readCiConfig(repository, operator));
  const names = new Map<string, Set<string>>();
  for (const mapping of config?.mappings ?? []) {
    const images = await ifReadable(() => listTemplateImages(repository, operator, mapping, session));
    for (const { image, name } of images ?? []) {
      const known = getOrAdd(names, image, () => new Set());
      if (name !== undefined) known.add(name);
    }
  }
  return [...names].flatMap(([image, [name, ...others]]): [string, string][] => {
    // Templates that disagree do not tell which bundle it is.
    if (others.length > 0) return [];
    const version = name === undefined ? getReleasedVersion(image, operator) : undefined;
    const directory = name === undefined ? byVersion.get(version ?? '') : byName.get(name);
    return directory === undefined ? [] : [[image, directory]];
  });
}

/** Returns the version in a reference `…/OPERATOR:VERSION` without digest; undefined for another one. */
function getReleasedVersion(image: string, operator: string): string | undefined {
  const reference = findReference(image);
  if (reference?.transport !== 'docker' || reference.digest !== undefined) return undefined;
  return path.posix.basename(reference.repository) === operator ? reference.tag : undefined;
}

/** Returns undefined for what cannot be read: its image is pulled, and checks report it. */
async function ifReadable<T>(read: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof OpmateError && error.code !== 'CANCELLED') return undefined;
    throw error;
  }
}

/** Renders a bundle directory as the bundle in an image, without migrating it. Throws OpmateError. */
export async function readCheckoutBundle(
  directory: string,
  image: string,
  { limits, signal }: SourceSession,
): Promise<BundleBlob> {
  const files = await readBundleDirectory(directory, { limits, signal });
  const source = { kind: 'bundle' as const, image, files, close: () => Promise.resolve() };
  return renderBundleSource(source, directory, { migrationLevel: 'none' });
}
