import path from 'node:path';
import { readBundleDirectory } from '../bundle/read.js';
import { mapConcurrent } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import { getText } from '../document/json-fields.js';
import type { BundleBlob } from '../model/declarative-config.js';
import { renderBundleSource } from '../source/render.js';
import type { SourceSession } from '../source/session.js';
import { listCatalogBundles } from './catalog-bundles.js';
import { readCheckedBundle } from './checks/bundle-model.js';
import {
  type OperatorRepository,
  findCatalogFile,
  listBundleDirectories,
  listCatalogsOf,
  listOperators,
  pathIn,
} from './repository.js';

/**
 * Returns the bundle directories of a checkout by image: committed catalogs have the name of the bundle in an image, and
 * the directory has the bundle of that name. Images that no catalog names, and unreadable catalogs and bundles, are omitted.
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
  const directories = new Map<string, string>();
  for (const version of await listBundleDirectories(repository, operator)) {
    const bundle = await readCheckedBundle(repository, operator, version);
    const name = await ifReadable(() => getText(bundle.getCsv().value, 'metadata', 'name'));
    if (name) directories.set(name, pathIn(repository, 'operators', operator, version));
  }
  if (directories.size === 0) return [];
  const images: [string, string][] = [];
  for (const catalog of await listCatalogsOf(repository, operator)) {
    const file = await findCatalogFile(repository, catalog, operator);
    if (file === undefined) continue;
    const bundles = await ifReadable(() => listCatalogBundles(path.join(repository.root, file), session));
    for (const { image, name } of bundles ?? []) {
      const directory = directories.get(name);
      if (directory !== undefined) images.push([image, directory]);
    }
  }
  return images;
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
