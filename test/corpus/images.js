// What of a corpus is pushed as images into an embedded registry: bundles, and a whole catalog.
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseYaml } from '../../dist/document/yaml.js';
import { layerOf } from '../../dist/archive/tar-writer.js';
import { buildImage, pushImage } from '../../dist/oci/image/image-builder.js';
import { openSession, parseReference, startRegistry } from '../../dist/index.js';
import { openTarget } from '../../dist/oci/image/open.js';

/**
 * Runs `work` with an embedded registry that commands reach as `registry.test:5000`: the environment in which
 * they do, a directory for its files, and `push`, which stores an image as `repository:tag` and returns its digest.
 */
export async function withRegistry(work) {
  const directory = mkdtempSync(path.join(tmpdir(), 'opmate-corpus-'));
  const registry = await startRegistry({ directory: path.join(directory, 'registry') });
  const session = await openSession({
    environment: {},
    homeDirectory: directory,
    temporaryDirectory: directory,
    architecture: process.arch,
    registry: { useHttp: true },
  });
  try {
    const { host } = new URL(registry.url);
    const push = async (name, options) => {
      const reference = parseReference(`${host}/${name}`);
      const target = await openTarget(reference, session);
      const image = await buildImage(options);
      return (await pushImage(target.repository, target.reference, image)).digest;
    };
    const conf = path.join(directory, 'registries.conf');
    const rule = `[[registry]]\nprefix = "registry.test:5000"\nlocation = "${host}"\ninsecure = true\n`;
    writeFileSync(conf, rule);
    const environment = { CONTAINERS_REGISTRIES_CONF: conf, TMPDIR: directory };
    await work({ directory, environment, push });
  } finally {
    await session.close();
    await registry.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

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

/** `withRegistry` with every bundle of the corpus: two gzip layers, labels = annotations. */
export async function withBundleImages(corpus, work) {
  await withRegistry(async (world) => {
    const push = async ({ operator, version }) => {
      const root = path.join(corpus, 'bundles', operator, version);
      const metadata = filesOf(path.join(root, 'metadata'), 'metadata');
      const layers = [
        await layerOf(filesOf(path.join(root, 'manifests'), 'manifests')),
        await layerOf(metadata),
      ];
      const name = `bundles/${operator}:${version.replaceAll('+', '_')}`;
      await world.push(name, { layers, labels: labelsOf(metadata) });
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
    await work(world);
  });
}

/** `withRegistry` with the catalog `catalogs/dev` as `catalogs/dev:v1`, and its digest. */
export async function withCatalogImage(corpus, work) {
  await withRegistry(async (world) => {
    const root = path.join(corpus, 'catalogs', 'dev');
    const files = readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => path.join(entry.parentPath, entry.name))
      .map((file) => ({ path: `configs/${path.relative(root, file)}`, content: readFileSync(file) }));
    const labels = { 'operators.operatorframework.io.index.configs.v1': '/configs' };
    const digest = await world.push('catalogs/dev:v1', { layers: [await layerOf(files)], labels });
    await work({ ...world, digest });
  });
}
