// Starts an embedded registry as a process of its own, and pushes bundles into it.
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { layerOf } from '../../dist/archive/tar-writer.js';
import { buildImage, pushImage } from '../../dist/oci/image/image-builder.js';
import { openSession, parseReference } from '../../dist/index.js';
import { openTarget } from '../../dist/oci/image/open.js';
import { bundleDirectories } from './catalog.js';
import { opmate } from './measure.js';

const packageLabel = 'operators.operatorframework.io.bundle.package.v1';

/** A registry on a directory below `work`: its URL and host, and how to stop it. */
export async function serveRegistry(work) {
  const server = spawn(process.execPath, [
    opmate,
    'oci',
    'serve',
    path.join(work, 'registry'),
    '--port',
    '0',
  ]);
  const url = await new Promise((resolve, reject) => {
    server.stdout.once('data', (line) => resolve(String(line).trim()));
    server.once('exit', (code) => reject(new Error(`oci serve: exit ${code}`)));
  });
  return { url, host: new URL(url).host, stop: () => server.kill('SIGTERM') };
}

/** The first `count` of the bundles at hand, begun anew where there are fewer, as `pushBundles` takes them. */
export function readBundles(count) {
  const directories = [...bundleDirectories().values()].flat();
  return Array.from({ length: count }, (_, i) => {
    const directory = directories[i % directories.length];
    const files = (part) =>
      Object.fromEntries(
        readdirSync(path.join(directory, part)).map((name) => [
          name,
          readFileSync(path.join(directory, part, name)),
        ]),
      );
    return {
      name: `bench/bundle-${i}:v1`,
      packageName: path.basename(path.dirname(directory)),
      manifests: files('manifests'),
      metadata: files('metadata'),
    };
  });
}

/**
 * Pushes bundles as images of two layers. Each is `{ name, packageName, manifests, metadata }`, where `name`
 * is what comes after the host, and the files are by name. Returns the references.
 */
export async function pushBundles(host, work, bundles) {
  const session = await openBenchSession(work);
  const references = [];
  for (const { name, packageName, manifests, metadata } of bundles) {
    const below = (directory, files) =>
      Object.entries(files).map(([file, content]) => ({
        path: `${directory}/${file}`,
        content: Buffer.from(content),
      }));
    const image = await buildImage({
      layers: [await layerOf(below('manifests', manifests)), await layerOf(below('metadata', metadata))],
      labels: { [packageLabel]: packageName },
    });
    const reference = `${host}/${name}`;
    const target = await openTarget(parseReference(reference), session);
    await pushImage(target.repository, target.reference, image);
    references.push(reference);
  }
  await session.close();
  return references;
}

/** Layers that several images of one repository have, for 100 images: 222 blobs with theirs and the configurations. */
const sharedLayers = 22;

/** Pushes images of two layers, one of which others of their repository have too. Returns `ns/name:tag` of each. */
export async function pushRepositories(host, work, { count, repositories }) {
  const session = await openBenchSession(work);
  const names = [];
  for (let i = 0; i < count; i++) {
    const group = i % sharedLayers;
    const layer = (name) => layerOf([{ path: `manifests/${name}`, content: Buffer.from(name.repeat(200)) }]);
    const image = await buildImage({
      layers: [await layer(`shared-${group}`), await layer(`own-${i}`)],
      labels: { [packageLabel]: `package-${i}` },
    });
    const name = `bench/repository-${group % repositories}:v${i}`;
    const target = await openTarget(parseReference(`${host}/${name}`), session);
    await pushImage(target.repository, target.reference, image);
    names.push(name);
  }
  await session.close();
  return names;
}

function openBenchSession(work) {
  return openSession({
    environment: {},
    homeDirectory: work,
    temporaryDirectory: work,
    architecture: process.arch,
    registry: { useHttp: true },
  });
}
