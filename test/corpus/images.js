// Pushes the bundles of a corpus as images into an embedded registry: two gzip layers, labels = annotations.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { parseYaml } from '../../dist/core/yaml.js';
import {
  buildImage,
  layerOf,
  openSession,
  openTarget,
  parseReference,
  pushImage,
  startRegistry,
} from '../../dist/index.js';

function filesOf(directory, prefix) {
  if (!existsSync(directory)) return [];
  return readdirSync(directory).map((name) => ({
    path: `${prefix}/${name}`,
    content: readFileSync(path.join(directory, name)),
  }));
}

/** The labels that a bundle's image carries. */
function labelsOf(metadata) {
  for (const { content } of metadata) {
    const annotations = parseYaml(content.toString())?.annotations;
    if (annotations !== undefined) {
      return Object.fromEntries(Object.entries(annotations).map(([key, value]) => [key, String(value)]));
    }
  }
  return {};
}

/**
 * Starts a registry on `directory` and pushes every bundle of the corpus to it. Returns it with its URL.
 */
export async function pushBundleImages(corpus, directory) {
  const registry = await startRegistry({ directory });
  const session = await openSession({
    environment: {},
    homeDirectory: directory,
    temporaryDirectory: directory,
    architecture: process.arch,
    registry: { useHttp: true },
  });
  const { host } = new URL(registry.url);
  const push = async ({ operator, version }) => {
    const root = path.join(corpus, 'bundles', operator, version);
    const metadata = filesOf(path.join(root, 'metadata'), 'metadata');
    const layers = [
      await layerOf(filesOf(path.join(root, 'manifests'), 'manifests')),
      await layerOf(metadata),
    ];
    const image = await buildImage({ layers, labels: labelsOf(metadata) });
    const reference = parseReference(`${host}/bundles/${operator}:${version.replaceAll('+', '_')}`);
    const target = await openTarget(reference, { connection: await session.connect() });
    await pushImage(target.repository, target.reference, image);
  };
  const waiting = readdirSync(path.join(corpus, 'bundles')).flatMap((operator) =>
    readdirSync(path.join(corpus, 'bundles', operator), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => ({ operator, version: entry.name })),
  );
  const worker = async () => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) await push(next);
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  await session.close();
  return registry;
}
