import path from 'node:path';
import { listSharedDirectories } from '../../archive/shared-directories.js';
import { type LayerFile, type TarInput, writeLayer } from '../../archive/tar-writer.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { imageLabels } from '../../model/image-labels.js';
import type { Image } from '../../oci/image/image.js';
import { type BuiltImage, buildImage, readWholeConfig } from '../../oci/image/image-builder.js';
import type { Platform } from '../../oci/image/types.js';
import type { ImageFile } from '../../bundle/image-files.js';

/** Platforms of a catalog image without base: those that clusters run on. */
export const catalogPlatforms: readonly Platform[] = ['amd64', 'arm64', 'ppc64le', 's390x'].map(
  (architecture) => ({ os: 'linux', architecture }),
);

/** Where a catalog image has its catalog, and the cache that it is served from. */
const places = { catalog: '/configs', cache: '/tmp/cache' } as const;

interface CatalogImageOptions extends CancelOptions {
  /** What to build on, an image a platform; none makes images of the data only. */
  bases: readonly Image[];
  /** Platforms of images without base. */
  platforms: readonly Platform[];
  /** Files of the cache that the catalog is served from. */
  cache?: readonly ImageFile[] | undefined;
  labels?: ReadonlyMap<string, string> | undefined;
  /** RFC 3339; 1970 unless told. */
  created?: string | undefined;
  /** Where the layers wait until the images are pushed; whoever names it removes it. */
  directory: string;
}

/**
 * Makes the images of a catalog, one a platform, with what the Dockerfile of `opm generate dockerfile` would put into
 * them: the files at `/configs`, the label that names them, and a command that serves them over gRPC, unless there is
 * no base that could. Modes are 0644 and 0755 whatever they were, and equal inputs make equal images.
 *
 * Without a cache the command names none: `opm serve` refuses to start with a cache directory that has none. Files are
 * streamed. Throws OpmateError INVALID for a base that is a catalog itself and for a label that this image has by its
 * nature; and what building an image and writing its layers throw.
 */
export async function buildCatalogImages(
  files: readonly ImageFile[],
  options: CatalogImageOptions,
): Promise<BuiltImage[]> {
  const { bases, platforms, cache, created, directory, signal } = options;
  for (const base of bases) checkBase(base);
  const labels: Record<string, string | undefined> = {};
  for (const [key, value] of options.labels ?? []) {
    if (key === imageLabels.configs || key === imageLabels.database) {
      throw new OpmateError('INVALID', `label ${key}: reserved for the location of the catalog`, {
        hint: `remove the label: the catalog is at ${places.catalog}`,
      });
    }
    labels[key] = value;
  }
  labels[imageLabels.configs] = places.catalog;
  // Of a base that served a database once.
  labels[imageLabels.database] = undefined;
  const layers: LayerFile[] = [];
  const createdBy: string[] = [];
  for (const [name, content] of [
    ['catalog', files],
    ['cache', cache],
  ] as const) {
    if (content === undefined) continue;
    const file = path.join(directory, `${name}.tar.gz`);
    layers.push(await writeLayer(file, getEntries(places[name].slice(1), content), { signal }));
    // An image without command tells nowhere else that it has a cache.
    createdBy.push(name === 'cache' ? `opmate: ${places.cache}` : 'opmate');
  }
  if (bases.length === 0)
    return Promise.all(
      platforms.map((platform) => buildImage({ layers, createdBy, labels, platform, created })),
    );
  const cmd = ['serve', places.catalog, ...(cache === undefined ? [] : [`--cache-dir=${places.cache}`])];
  return Promise.all(
    bases.map(async (base) =>
      buildImage({
        layers,
        createdBy,
        labels,
        base,
        baseConfig: await readWholeConfig(base, { signal }),
        platform: base.platform,
        created,
        entrypoint: ['/bin/opm'],
        cmd,
        exposedPorts: ['50051/tcp'],
      }),
    ),
  );
}

function getEntries(place: string, files: readonly ImageFile[]): TarInput[] {
  const entries: TarInput[] = files.map(({ path: name, file, offset, size }) => ({
    path: `${place}/${name}`,
    content: { file, offset, size },
  }));
  if (entries.length === 0) entries.push({ path: place, type: 'directory' });
  return [...entries, ...listSharedDirectories(entries)];
}

/** The catalog of a base would be mixed with the new one, and nobody has checked that. */
function checkBase({ name, labels }: Image): void {
  if (labels[imageLabels.configs] === undefined) return;
  throw new OpmateError('INVALID', 'is the image of a catalog, which would be mixed with the new one', {
    subject: name,
    hint: 'build on an image that contains only opm, or on scratch',
  });
}
