import { readPackageManifests } from '../../bundle/package-manifests.js';
import type { Database } from '../schema/database.js';
import { type LoadOptions, type LoadReport, type LoadSession, ManifestLoader } from './manifest-loader.js';

/**
 * Loads a tree of package manifests: its bundles, which have no image, then its packages. Runs in the caller's
 * transaction. Throws ManifestsError with all problems unless permissive, and as reading the tree.
 */
export async function loadPackageManifests(
  database: Database,
  directory: string,
  session: LoadSession = {},
  options: LoadOptions = {},
): Promise<LoadReport> {
  const { label = directory } = options;
  const loader = new ManifestLoader(database, label, session, options);
  await loadTree(loader, directory, label, session);
  return loader.finish();
}

/** Passes the content of a tree to a loader. */
export async function loadTree(
  loader: ManifestLoader,
  directory: string,
  label: string,
  { signal, followLinks }: LoadSession,
): Promise<void> {
  for await (const item of readPackageManifests(directory, { label, signal, followLinks })) {
    if (item.kind === 'bundle') await loader.addBundle(item.bundle, item.file);
    else if (item.kind === 'package') loader.addPackage(item.manifest);
    else if (item.kind === 'problem') loader.addProblem(item.error);
    else loader.addSkipped(item.file, item.reason);
  }
}
