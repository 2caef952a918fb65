import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundleDirectories } from './support/catalog.js';
import { compare, opmate } from './support/measure.js';
import { buildImage, layerOf, openSession, openTarget, parseReference, pushImage } from '../dist/index.js';

export const summary =
  'render of 100 bundle images from a local registry, as a ratio to fetching and unpacking them';

const packageLabel = 'operators.operatorframework.io.bundle.package.v1';

export async function run() {
  const work = mkdtempSync(path.join(tmpdir(), 'opmate-bench-'));
  const server = spawn(process.execPath, [
    opmate,
    'oci',
    'serve',
    path.join(work, 'registry'),
    '--port',
    '0',
  ]);
  try {
    const url = await new Promise((resolve) =>
      server.stdout.once('data', (line) => resolve(String(line).trim())),
    );
    const references = await pushBundles(new URL(url).host, work);
    const fetchAll = fileURLToPath(new URL('./support/fetch-images.js', import.meta.url));
    // The goal is 2 s on two cores; fetching the same bytes without reading them takes about a third of that.
    return await compare({
      name: `render of ${references.length} images`,
      subject: [opmate, ['render', '--use-http', ...references]],
      baseline: [fetchAll, [url, ...references]],
      maxRatio: 8,
    });
  } finally {
    server.kill('SIGTERM');
    rmSync(work, { recursive: true, force: true });
  }
}

async function pushBundles(host, work) {
  const session = await openSession({
    environment: {},
    homeDirectory: work,
    temporaryDirectory: work,
    architecture: process.arch,
    registry: { useHttp: true },
  });
  const directories = [...bundleDirectories().values()].flat();
  const references = [];
  for (let i = 0; i < 100; i++) {
    const directory = directories[i % directories.length];
    const files = (part) =>
      readdirSync(path.join(directory, part)).map((name) => ({
        path: `${part}/${name}`,
        content: readFileSync(path.join(directory, part, name)),
      }));
    const layers = [await layerOf(files('manifests')), await layerOf(files('metadata'))];
    const image = await buildImage({
      layers,
      labels: { [packageLabel]: path.basename(path.dirname(directory)) },
    });
    const reference = `${host}/bench/bundle-${i}:v1`;
    const target = await openTarget(parseReference(reference), { connection: await session.connect() });
    await pushImage(target.repository, target.reference, image);
    references.push(reference);
  }
  await session.close();
  return references;
}
