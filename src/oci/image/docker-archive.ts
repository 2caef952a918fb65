import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { type BuiltImage, pushImage } from './image-builder.js';
import { openLayout } from '../layout/layout.js';
import { packLayout } from '../layout/layout-pack.js';
import type { Descriptor, ImageManifest } from './types.js';

interface SaveImageOptions extends CancelOptions {
  /** `REGISTRY/NAME:TAG`, which the image has once it is loaded; without it, it has none. */
  name?: string | undefined;
  /** Holds the layers until the archive is written; whoever names it removes it. */
  directory: string;
}

/**
 * Writes an image as an archive that `docker load` reads, and that is an OCI layout too, as those of newer Dockers
 * are: so its manifest, and with that its digest, stays as it is. Equal images make equal archives. What has the name
 * of the file is replaced when the new one is whole. Throws what storing the image and `packLayout` throw.
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
