/** Images for the tests of commands, made by the library and put where commands find them. */
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { layerOf } from '../../src/archive/tar-writer.js';
import { type BuiltImage, buildImage, pushImage } from '../../src/oci/image/image-builder.js';
import { openLayout } from '../../src/oci/layout/layout.js';
import type { Platform } from '../../src/oci/image/types.js';
import { imageLabels } from '../../src/model/image-labels.js';
import { bundlesDirectory } from '../support/command-line.js';
import type { FaultRegistry } from '../support/fault-registry.js';
import { type RawEntry, rawTar } from '../support/tar.js';

export interface ImageContent {
  /** Files of the only layer by slash path. */
  files?: Record<string, string | Buffer>;
  /** Further layers, of entries that no honest tool would write. */
  raw?: RawEntry[][];
  labels?: Record<string, string>;
  platform?: Platform;
}

export async function makeImage(content: ImageContent): Promise<BuiltImage> {
  const { files = {}, raw = [], labels = {}, platform } = content;
  const entries = Object.entries(files).map(([name, text]) => ({ path: name, content: Buffer.from(text) }));
  const layers = raw.map((layer) => gzipSync(rawTar(layer)));
  return buildImage({ layers: [await layerOf(entries), ...layers], labels, platform });
}

/** An image of a catalog, at `/configs` unless told. */
export function makeCatalogImage(
  files: Record<string, string | Buffer>,
  options: { label?: string; platform?: Platform } = {},
): Promise<BuiltImage> {
  const { label = '/configs', ...rest } = options;
  const inImage = Object.entries(files).map(([name, content]) => [`configs/${name}`, content]);
  const labels = { [imageLabels.configs]: label };
  return makeImage({ files: Object.fromEntries(inImage) as typeof files, labels, ...rest });
}

/** The image of an index as index builds make it: a catalog of package `demo`, and the database that it is rendered from. */
export async function makeBuiltIndex(database: string, catalog: string): Promise<BuiltImage> {
  const files = {
    'configs/demo/catalog.json': catalog,
    'var/lib/iib/_hidden/do.not.edit.db': await readFile(database),
  };
  return makeImage({ files, labels: { [imageLabels.configs]: '/configs' } });
}

/** The image of one of the real bundles, e.g. `microcks/0.3.0`. */
export async function makeBundleImage(name: string): Promise<BuiltImage> {
  const files: Record<string, Buffer> = {};
  for (const folder of ['manifests', 'metadata']) {
    const directory = path.join(bundlesDirectory, name, folder);
    for (const file of await readdir(directory))
      files[`${folder}/${file}`] = await readFile(path.join(directory, file));
  }
  const annotations = String(files['metadata/annotations.yaml']);
  const pairs = [...annotations.matchAll(/^ +([\w./-]+): *(.+)$/gm)].map(([, key, value]) => [key, value]);
  return makeImage({ files, labels: Object.fromEntries(pairs) as Record<string, string> });
}

/** Puts an image into a layout directory, which is made where there is none. */
export async function storeImage(directory: string, tag: string, image: BuiltImage): Promise<void> {
  await pushImage(await openLayout(directory, { create: true }), tag, image);
}

/** Packs a layout directory as an `oci-archive:` file. */
export async function packLayout(directory: string): Promise<Buffer> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true });
  const entries: RawEntry[] = [];
  for (const entry of names.filter((name) => name.isFile())) {
    const file = path.join(entry.parentPath, entry.name);
    entries.push({ name: path.relative(directory, file), content: await readFile(file) });
  }
  return rawTar(entries);
}

/** Has the registry serve an image; returns the digest of its manifest. */
export function serveBuilt(
  registry: FaultRegistry,
  repository: string,
  tag: string,
  image: BuiltImage,
): string {
  registry.serveBlob(repository, image.config);
  for (const { bytes } of image.layers) registry.serveBlob(repository, bytes);
  return registry.serveManifest(repository, tag, image.manifest);
}
