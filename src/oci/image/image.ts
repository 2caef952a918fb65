import type { FileTree } from '../../archive/file-tree.js';
import {
  type ExtractLayersOptions,
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

/** An image for one platform. */
export interface Image {
  repository: Repository;
  /** Name in messages: `quay.io/ns/name:v1`. */
  name: string;
  /** Descriptor of the reference: an index or the image manifest. Its digest pins the reference. */
  root: Descriptor;
  /** Descriptor of the image manifest. */
  descriptor: Descriptor;
  manifest: ImageManifest;
  config: ImageConfig;
  /** Labels of the configuration; an object without prototype. */
  labels: Record<string, string>;
  platform: Platform;
}

/**
 * Opens the image of a tag or digest for a platform, see `choosePlatform`: reads manifest and configuration, but no layer.
 * Throws OpmateError NOT_FOUND, INVALID, UNSUPPORTED (an artifact that is no image), LIMIT, and the errors of the
 * repository.
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

/** Reads a blob whole. Throws LimitError for more than `limit` bytes, and the errors of `openBlob`. */
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

/** Reads files of an image into memory, see `readLayers`. Damaged layers are read again. */
export function readImage(image: Image, options: ReadLayersOptions): Promise<FileTree> {
  const layers = getLayers(image.repository, image.manifest.layers, options);
  return retryDamaged(() => readLayers(layers, options), options);
}

/** Unpacks files of an image, see `extractLayers`. Damaged layers are read again. */
export function extractImage(
  image: Image,
  destination: string,
  options: ExtractLayersOptions,
): Promise<ExtractedLayers> {
  return extractBlobs(image.repository, image.manifest.layers, destination, options);
}

/** Unpacks archives of a repository in order. Damaged ones are read again. */
export function extractBlobs(
  repository: Repository,
  blobs: readonly Descriptor[],
  destination: string,
  options: ExtractLayersOptions,
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
