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

/** Platforms of a catalog image without a base: those of clusters. */
export const catalogPlatforms: readonly Platform[] = ['amd64', 'arm64', 'ppc64le', 's390x'].map(
  (architecture) => ({ os: 'linux', architecture }),
);

/** Paths of the catalog and its serve cache in a catalog image. */
const places = { catalog: '/configs', cache: '/tmp/cache' } as const;

interface CatalogImageOptions extends CancelOptions {
  /** Base images, one per platform; none for data-only images. */
  bases: readonly Image[];
  /** Platforms of images without a base. */
  platforms: readonly Platform[];
  /** Files of the serve cache. */
  cache?: readonly ImageFile[] | undefined;
  labels?: ReadonlyMap<string, string> | undefined;
  /** Creation time in RFC 3339; default: 1970. */
  created?: string | undefined;
  /** Directory of the layers until the images are pushed, which the caller removes. */
  directory: string;
}

/**
 * Builds catalog images, one per platform, with the content of the Dockerfile of `opm generate dockerfile`: the files
 * at `/configs`, their location label, and a command that serves them over gRPC, if there is a base. File modes are
 * 0644 and 0755; equal inputs make equal images.
 *
 * Without a cache the command omits the cache directory: `opm serve` fails for an empty one. Files are streamed.
 * Throws OpmateError INVALID for a base that is a catalog and for reserved labels; and as image building and layer
 * writing.
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
  // Database of a base that served an index.
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
    // Only the command of an image shows that it has a cache.
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

/** Rejects a base that is a catalog, whose blobs would be mixed with the new ones unchecked. */
function checkBase({ name, labels }: Image): void {
  if (labels[imageLabels.configs] === undefined) return;
  throw new OpmateError('INVALID', 'is a catalog image, whose content would be mixed with the new catalog', {
    subject: name,
    hint: 'build on an image that contains only opm, or on scratch',
  });
}
