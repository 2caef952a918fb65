import type { FileTree } from '../../archive/file-tree.js';
import {
  type ExtractedLayers,
  type LayerInput,
  type ReadLayersOptions,
  extractLayers,
  readLayers,
} from '../../archive/layers.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, OpmateError } from '../../core/errors.js';
import { parseImageConfig } from './manifest.js';
import { type PlatformChoice, resolveImage, getSubject } from './platform.js';
import { readLimited } from './read-limited.js';
import type { Repository } from '../registry/repository.js';
import { retryDamaged } from '../transport/retry-policy.js';
import {
  type Descriptor,
  type ImageConfig,
  type ImageManifest,
  mediaTypes,
  type Platform,
  maxManifestBytes,
} from './types.js';

/** One image for one platform; its layers are read with `repository.openBlob`. */
export interface Image {
  repository: Repository;
  /** How messages name it, e.g. `quay.io/ns/name:v1`. */
  name: string;
  /** What the reference names: an index, or the image manifest itself. Its digest pins the reference. */
  root: Descriptor;
  /** The image manifest. */
  descriptor: Descriptor;
  manifest: ImageManifest;
  config: ImageConfig;
  /** The configuration's labels; an object without prototype. */
  labels: Record<string, string>;
  platform: Platform;
}

/**
 * Opens the image that a tag or digest of a repository means on a platform (`choosePlatform`): its
 * manifest and configuration, verified; no layer. A tag is looked up once.
 * Throws OpmateError NOT_FOUND, INVALID, UNSUPPORTED (an artifact that is no image), LIMIT, and what the
 * repository throws.
 */
export async function openImage(
  repository: Repository,
  reference: string,
  options: PlatformChoice & CancelOptions,
): Promise<Image> {
  const { root, descriptor, parsed, platform } = await resolveImage(repository, reference, options);
  const name = getSubject(repository.name, reference);
  const { manifest } = parsed;
  const { config: configDescriptor } = manifest;
  if (
    configDescriptor.mediaType !== mediaTypes.ociConfig &&
    configDescriptor.mediaType !== mediaTypes.dockerConfig
  ) {
    const type = manifest.artifactType ?? configDescriptor.mediaType;
    throw new OpmateError(
      'UNSUPPORTED',
      `${name}: an artifact of type ${JSON.stringify(type)}, not an image`,
    );
  }
  const bytes = await readBlob(repository, configDescriptor, maxManifestBytes, options);
  const config = parseImageConfig(bytes, `${name}: configuration ${configDescriptor.digest}`);
  const labels = Object.assign(Object.create(null) as Record<string, string>, config.config?.Labels);
  return {
    repository,
    name,
    root,
    descriptor,
    manifest,
    config,
    labels,
    platform: platform ?? {
      os: config.os ?? 'linux',
      architecture: config.architecture ?? 'unknown',
      ...(config.variant === undefined ? {} : { variant: config.variant }),
    },
  };
}

/**
 * Reads a small blob whole, verified. Throws LimitError when its descriptor promises more than `limit`
 * bytes, and what `openBlob` throws.
 */
export async function readBlob(
  repository: Repository,
  descriptor: Descriptor,
  limit: number,
  options: CancelOptions = {},
): Promise<Buffer> {
  if (descriptor.size > limit) {
    throw new LimitError(
      `${repository.name}: ${descriptor.digest}: ${descriptor.size} bytes, more than ${limit}`,
    );
  }
  return readLimited(await repository.openBlob(descriptor, options), limit, descriptor.digest);
}

/** Reads files of an image into memory, as `readLayers` does. Layers that arrive damaged are read again. */
export function readImage(image: Image, options: ReadLayersOptions): Promise<FileTree> {
  const layers = getLayers(image.repository, image.manifest.layers, options);
  return retryDamaged(() => readLayers(layers, options), options);
}

/** Unpacks files of an image, as `extractLayers` does. Layers that arrive damaged are read again. */
export function extractImage(
  image: Image,
  destination: string,
  options: ReadLayersOptions,
): Promise<ExtractedLayers> {
  return extractBlobs(image.repository, image.manifest.layers, destination, options);
}

/** Unpacks archives of a repository in this order. Those that arrive damaged are read again. */
export function extractBlobs(
  repository: Repository,
  blobs: readonly Descriptor[],
  destination: string,
  options: ReadLayersOptions,
): Promise<ExtractedLayers> {
  const layers = getLayers(repository, blobs, options);
  return retryDamaged(() => extractLayers(layers, destination, options), options);
}

function getLayers(
  repository: Repository,
  blobs: readonly Descriptor[],
  { signal }: CancelOptions,
): LayerInput[] {
  return blobs.map((blob) => ({
    label: blob.digest,
    open: () => repository.openBlob(blob, { signal }),
  }));
}
