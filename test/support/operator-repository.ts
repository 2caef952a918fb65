import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { type Session, openSourceSession } from '../../src/source/session.js';
import { makeImage, serveBuilt } from '../e2e/images.js';
import { sessionOptions } from '../unit/source/session-options.js';
import { type FaultRegistry, startFaultRegistry } from './fault-registry.js';
import { type SmallBundle, inDirectory, smallBundle } from './small-bundle.js';
import { directoryWith } from './temporary.js';

export interface RepositoryWorld {
  registry: FaultRegistry;
  session: Session;
  /** Serves a small bundle of a package; returns its reference. */
  serve(packageName: string, version: string, bundle?: SmallBundle): Promise<string>;
}

/** Opens a registry for bundles and a session that reads them. */
export async function openRepositoryWorld(): Promise<RepositoryWorld> {
  const registry = await startFaultRegistry();
  const session = await openSourceSession(await sessionOptions());
  onTestFinished(async () => {
    await session.close();
    await registry.close();
  });
  return {
    registry,
    session,
    async serve(packageName, version, bundle = {}) {
      const image = await makeImage({
        files: smallBundle({ packageName, version, ...bundle }),
        labels: { 'operators.operatorframework.io.bundle.package.v1': packageName },
      });
      serveBuilt(registry, 'ns/bundles', `${packageName}-${version}`, image);
      return `${registry.host}/ns/bundles:${packageName}-${version}`;
    },
  };
}

/** Returns the files of a small bundle in a checkout. */
export function bundleInCheckout(packageName: string, version: string): Record<string, string> {
  const { 'manifests/csv.yaml': csv = '', ...files } = smallBundle({ packageName, version });
  const csvFile = `manifests/${packageName}.clusterserviceversion.yaml`;
  return inDirectory(`operators/${packageName}/${version}`, { ...files, [csvFile]: csv });
}

/** Returns `ci.yaml` that maps templates to catalogs. */
export function ciConfig(mappings: Record<string, string[]>, type = 'olm.template.basic'): string {
  const entries = Object.entries(mappings).map(([template, catalogs]) => ({
    template_name: template,
    catalog_names: catalogs,
    type,
  }));
  return `${JSON.stringify({ fbc: { enabled: true, catalog_mapping: entries } })}\n`;
}

/** Returns a basic template with one channel. */
export function basicTemplate(
  packageName: string,
  versions: readonly string[],
  images: readonly string[],
): string {
  const entries = versions.map((version, index) => ({
    name: `${packageName}.v${version}`,
    ...(index > 0 && { replaces: `${packageName}.v${versions[index - 1]}` }),
  }));
  return JSON.stringify({
    schema: 'olm.template.basic',
    entries: [
      { schema: 'olm.package', name: packageName, defaultChannel: 'stable' },
      { schema: 'olm.channel', package: packageName, name: 'stable', entries },
      ...images.map((image) => ({ schema: 'olm.bundle', image })),
    ],
  });
}

/** Creates a checkout with `files`. */
export async function repositoryWith(files: Record<string, string>): Promise<string> {
  return directoryWith({ 'config.yaml': 'organization: test\n', ...files });
}

export const readIn = (root: string, ...parts: string[]): Promise<string> =>
  readFile(path.join(root, ...parts), 'utf8');
