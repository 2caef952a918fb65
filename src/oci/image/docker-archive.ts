import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { type BuiltImage, pushImage } from './image-builder.js';
import { openLayout } from '../layout/layout.js';
import { packLayout } from '../layout/layout-pack.js';
import type { Descriptor, ImageManifest } from './types.js';

interface SaveImageOptions extends CancelOptions {
  /** `REGISTRY/NAME:TAG` of the loaded image. */
  name?: string | undefined;
  /** Directory for the layers until the archive is written; the caller removes it. */
  directory: string;
}

/**
 * Writes an image as an archive for `docker load` that is an OCI layout, too, so its digest is kept. Equal images have
 * equal archives. An existing file is replaced when the new one is complete. Throws the errors of storing the image and
 * of `packLayout`.
 */
export async function saveDockerArchive(
  image: BuiltImage,
  file: string,
  { name, directory, signal }: SaveImageOptions,
): Promise<Descriptor> {
  const layout = path.join(directory, 'saved');
  const target = await openLayout(layout, { create: true });
  const descriptor = await pushImage(target, name ?? 'latest', image, { signal });
  const getPath = (digest: string): string => `blobs/${digest.replace(':', '/')}`;
  const { layers } = JSON.parse(image.manifest.toString()) as ImageManifest;
  const saved = {
    Config: getPath(image.configDescriptor.digest),
    RepoTags: name === undefined ? null : [name],
    Layers: layers.map(({ digest }) => getPath(digest)),
  };
  const content = Buffer.from(JSON.stringify([saved]));
  await packLayout(layout, file, { signal, files: [{ path: 'manifest.json', content }] });
  return descriptor;
}
