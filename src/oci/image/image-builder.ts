import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type { Layer, LayerFile } from '../../archive/tar-writer.js';
import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { computeDigest } from '../../core/digest.js';
import { OpmateError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { defaultCopyConcurrency } from './copy.js';
import { type Image, openImage, readBlob } from './image.js';
import { isIndexType, parseManifest } from './manifest.js';
import {
  type PlatformChoice,
  choosePlatform,
  isAttestation,
  missingPlatform,
  getSubject,
} from './platform.js';
import type { ManifestContent, Repository, WritableRepository } from '../registry/repository.js';
import {
  type Descriptor,
  type ImageConfig,
  type ImageIndex,
  type ImageManifest,
  maxManifestBytes,
  mediaTypes,
  type Platform,
  uniqueByDigest,
} from './types.js';

/** Default creation time of images. */
export const defaultCreated = '1970-01-01T00:00:00Z';

export interface BuildImageOptions {
  /** Gzip-compressed tar archives, bottom first; a Buffer is unpacked once for its diff ID. */
  layers: readonly (Layer | LayerFile | Buffer)[];
  /** History entry of each layer; default: `opmate`. */
  createdBy?: readonly string[] | undefined;
  /** Added to those of the base; undefined removes one. */
  labels?: Readonly<Record<string, string | undefined>> | undefined;
  /** Default: that of the base, or linux/amd64. */
  platform?: Platform | undefined;
  /** RFC 3339; default: 1970, so equal inputs make equal images. */
  created?: string | undefined;
  /** Replaces that of the base and its command. */
  entrypoint?: readonly string[] | undefined;
  cmd?: readonly string[] | undefined;
  /** Added to those of the base, such as `50051/tcp`. */
  exposedPorts?: readonly string[] | undefined;
  base?: Image | undefined;
  /** Keep the media types of a base in Docker's form; by default all images are in that of OCI. */
  keepsForm?: boolean | undefined;
  /** Whole configuration of the base, whose unknown fields are kept; see `readWholeConfig`. */
  baseConfig?: JsonObject | undefined;
}

/** An image in memory, except layers of its base and in files. */
export interface BuiltImage {
  descriptor: Descriptor;
  manifest: Buffer;
  config: Buffer;
  configDescriptor: Descriptor;
  platform: Platform;
  /** New layers in memory. */
  layers: { descriptor: Descriptor; bytes: Buffer }[];
  /** New layers in files, which must exist until the image is pushed. */
  layerFiles: { descriptor: Descriptor; file: string }[];
  base: Image | undefined;
}

/**
 * Opens the base images of a reference: all for Linux of a multi-platform base, or that of `platform`. Throws OpmateError
 * UNSUPPORTED for a nested index without `platform`, NOT_FOUND without any image, and the errors of opening.
 */
export async function openBases(
  repository: Repository,
  reference: string,
  options: PlatformChoice & CancelOptions,
): Promise<Image[]> {
  if (options.platform !== undefined) return [await openImage(repository, reference, options)];
  const { bytes, descriptor } = await repository.getManifest(reference, options);
  const subject = getSubject(repository.name, reference);
  const parsed = parseManifest(bytes, { subject, mediaType: descriptor.mediaType });
  if (parsed.kind === 'image') return [await openImage(repository, descriptor.digest, options)];
  const entries = parsed.index.manifests.filter(
    (entry) => !isAttestation(entry) && (entry.platform?.os ?? 'linux') === 'linux',
  );
  if (entries.length === 0) throw new OpmateError('NOT_FOUND', 'no image for Linux', { subject });
  if (entries.length > maxPlatforms || entries.some((entry) => isIndexType(entry.mediaType))) {
    throw new OpmateError('UNSUPPORTED', 'not an index with one image per platform', {
      subject,
      hint: 'select a platform with session.platform',
    });
  }
  return mapConcurrent(
    entries,
    defaultCopyConcurrency,
    async (entry) => {
      const image = await openImage(repository, entry.digest, options);
      return { ...image, platform: entry.platform ?? image.platform };
    },
    options,
  );
}

/** Returns the bases for `platforms`, in their own order. Throws OpmateError NOT_FOUND, naming `subject`. */
export function chooseBases(
  images: readonly Image[],
  platforms: readonly Platform[],
  subject: string,
): Image[] {
  const entries = images.map(({ descriptor, platform }) => ({ ...descriptor, platform }));
  const chosen = platforms.map((platform) => {
    const choice = choosePlatform(entries, { platform, hostPlatform: platform });
    const index = entries.findIndex((entry) => entry === choice);
    if (index >= 0) return index;
    throw missingPlatform(platform, entries, { subject });
  });
  return images.filter((_, index) => chosen.includes(index));
}

/** Maximum platforms of a base. */
const maxPlatforms = 32;

/** Reads the whole configuration of an open image. Throws the errors of opening the blob. */
export async function readWholeConfig(image: Image, options: CancelOptions = {}): Promise<JsonObject> {
  const { repository, manifest } = image;
  const bytes = await readBlob(repository, manifest.config, maxManifestBytes, options);
  // Opening the image has checked its type and duplicate keys.
  return JSON.parse(bytes.toString()) as JsonObject;
}

/** Fields beside `config` that describe the image, and not how it was built. */
const furtherFields: readonly string[] = ['author', 'os.version', 'os.features'];

function pick(object: JsonObject | undefined, isWanted: (key: string) => boolean): JsonObject {
  return Object.fromEntries(Object.entries(object ?? {}).filter(([key]) => isWanted(key)));
}

/** Media types of images in the forms of OCI and Docker. */
const forms = {
  oci: {
    manifest: mediaTypes.ociManifest,
    config: mediaTypes.ociConfig,
    layer: mediaTypes.ociLayerGzip,
    index: mediaTypes.ociIndex,
  },
  docker: {
    manifest: mediaTypes.dockerManifest,
    config: mediaTypes.dockerConfig,
    layer: mediaTypes.dockerLayerGzip,
    index: mediaTypes.dockerManifestList,
  },
} as const;

/**
 * Builds an image whose bytes depend on the options only. Throws OpmateError INVALID for a layer that is not gzip, and
 * UNSUPPORTED for a layer type of the base that OCI lacks.
 */
export async function buildImage(options: BuildImageOptions): Promise<BuiltImage> {
  const { base, created = defaultCreated } = options;
  const isDocker = options.keepsForm === true && base?.descriptor.mediaType === mediaTypes.dockerManifest;
  const form = isDocker ? forms.docker : forms.oci;
  const layers = await Promise.all(options.layers.map((layer) => describeLayer(layer, form.layer)));
  const platform = options.platform ?? base?.platform ?? { os: 'linux', architecture: 'amd64' };
  const baseLayers = base?.manifest.layers ?? [];
  const baseIds = base?.config.rootfs?.diff_ids ?? [];
  if (baseIds.length !== baseLayers.length) {
    const problem = `${baseIds.length} layers in its configuration, but ${baseLayers.length} in its manifest`;
    throw new OpmateError('INVALID', problem, { subject: base?.name });
  }
  const config: ImageConfig = {
    created,
    ...pick(options.baseConfig, (key) => furtherFields.includes(key)),
    architecture: platform.architecture,
    os: platform.os,
    ...(platform.variant ? { variant: platform.variant } : {}),
    config: runConfig(options),
    rootfs: { type: 'layers', diff_ids: [...baseIds, ...layers.map((layer) => layer.diffId)] },
    history: [
      ...(base?.config.history ?? []),
      ...layers.map((_, index) => ({ created, created_by: options.createdBy?.[index] ?? 'opmate' })),
    ],
  };
  const configBytes = Buffer.from(JSON.stringify(config));
  const configDescriptor = describe(form.config, configBytes);
  const manifest: ImageManifest = {
    schemaVersion: 2,
    mediaType: form.manifest,
    config: configDescriptor,
    layers: [...(isDocker ? baseLayers : baseLayers.map(toOci)), ...layers.map((layer) => layer.descriptor)],
  };
  const bytes = Buffer.from(JSON.stringify(manifest));
  return {
    descriptor: describe(form.manifest, bytes),
    manifest: bytes,
    config: configBytes,
    configDescriptor,
    platform,
    layers: layers.flatMap(({ descriptor, bytes }) => (bytes === undefined ? [] : [{ descriptor, bytes }])),
    layerFiles: layers.flatMap(({ descriptor, file }) => (file === undefined ? [] : [{ descriptor, file }])),
    base,
  };
}

/** Yields the configuration and the new layers of a built image. */
export function* listNewBlobs(
  image: BuiltImage,
): Generator<{ descriptor: Descriptor; open: () => Readable }> {
  for (const { descriptor, bytes } of image.layers) yield { descriptor, open: () => toStream(bytes) };
  for (const { descriptor, file } of image.layerFiles) {
    yield { descriptor, open: () => createReadStream(file, { highWaterMark: 256 * 1024 }) };
  }
  yield { descriptor: image.configDescriptor, open: () => toStream(image.config) };
}

/** Stores a built image with the layers of its base, then its manifest under a tag or its digest. */
export async function pushImage(
  target: WritableRepository,
  reference: string,
  image: BuiltImage,
  options: CancelOptions = {},
): Promise<Descriptor> {
  const blobs: { descriptor: Descriptor; open: () => Promise<Readable> | Readable }[] = [
    ...(image.base?.manifest.layers ?? []).map((descriptor) => ({
      descriptor,
      open: () => (image.base as Image).repository.openBlob(descriptor, options),
    })),
    ...listNewBlobs(image),
  ];
  await mapConcurrent(
    uniqueByDigest(blobs.map((blob) => ({ ...blob, digest: blob.descriptor.digest }))),
    defaultCopyConcurrency,
    ({ descriptor, open }) => target.putBlob(descriptor, open, options),
    options,
  );
  return target.putManifest(reference, image.manifest, image.descriptor.mediaType, options);
}

/** Stores images of several platforms, then their index under a tag. */
export async function pushImageIndex(
  target: WritableRepository,
  reference: string,
  images: readonly BuiltImage[],
  options: CancelOptions = {},
): Promise<Descriptor> {
  for (const image of images) await pushImage(target, image.descriptor.digest, image, options);
  const { bytes, descriptor } = createImageIndex(images);
  return target.putManifest(reference, bytes, descriptor.mediaType, options);
}

/** Returns the index of images of several platforms. Its bytes depend on the images only. */
export function createImageIndex(images: readonly BuiltImage[]): ManifestContent {
  const manifests = images.map(({ descriptor, platform }) => ({ ...descriptor, platform }));
  const isDocker = images.every(({ descriptor }) => descriptor.mediaType === mediaTypes.dockerManifest);
  const mediaType = (isDocker ? forms.docker : forms.oci).index;
  const index: ImageIndex = { schemaVersion: 2, mediaType, manifests };
  const bytes = Buffer.from(JSON.stringify(index));
  return { descriptor: describe(mediaType, bytes), bytes };
}

/** Returns the descriptor of a stored image, or of the index of several. */
export function describeImages(images: readonly BuiltImage[]): Descriptor {
  const [first, ...others] = images;
  return first !== undefined && others.length === 0 ? first.descriptor : createImageIndex(images).descriptor;
}

/** Fields that this module writes itself. */
const ownFields: ReadonlySet<string> = new Set(['Labels', 'Entrypoint', 'Cmd', 'ExposedPorts']);

function runConfig(options: BuildImageOptions): NonNullable<ImageConfig['config']> {
  const { base, labels, entrypoint, cmd, exposedPorts = [] } = options;
  const { Labels, Entrypoint, Cmd, ExposedPorts, ...inherited } = base?.config.config ?? {};
  const combined = Object.entries({ ...Labels, ...labels }).filter(
    (label): label is [string, string] => label[1] !== undefined,
  );
  const merged = Object.fromEntries(combined.sort(([a], [b]) => compareBytes(a, b)));
  const ports: Record<string, object> = { ...ExposedPorts };
  for (const port of exposedPorts) ports[port] ??= {};
  const start = entrypoint ?? Entrypoint;
  const command = cmd ?? (entrypoint ? undefined : Cmd);
  const whole = options.baseConfig?.['config'];
  const known = { ...base?.config.config };
  return {
    ...pick(
      isJsonObject(whole) ? whole : undefined,
      (key) => !Object.hasOwn(known, key) && !ownFields.has(key),
    ),
    ...inherited,
    ...(ExposedPorts || exposedPorts.length > 0 ? { ExposedPorts: ports } : {}),
    ...(start ? { Entrypoint: [...start] } : {}),
    ...(command ? { Cmd: [...command] } : {}),
    ...(Object.keys(merged).length > 0 ? { Labels: merged } : {}),
  };
}

async function describeLayer(
  layer: Layer | LayerFile | Buffer,
  mediaType: string,
): Promise<{ descriptor: Descriptor; bytes?: Buffer; file?: string; diffId: string }> {
  if (!Buffer.isBuffer(layer)) {
    const { digest, size, diffId, ...content } = layer;
    return { descriptor: { mediaType, digest, size }, ...content, diffId };
  }
  const hash = createHash('sha256');
  try {
    await pipeline(toStream(layer), createGunzip(), hash);
  } catch (cause) {
    throw new OpmateError('INVALID', 'layer: not gzip', { cause });
  }
  return {
    descriptor: describe(mediaType, layer),
    bytes: layer,
    diffId: `sha256:${hash.digest('hex')}`,
  };
}

function describe(mediaType: string, bytes: Buffer): Descriptor {
  return { mediaType, digest: computeDigest(bytes), size: bytes.length };
}

/** Returns a layer with its OCI media type; Docker layers have the same bytes. */
function toOci(layer: Descriptor): Descriptor {
  const { digest, size } = layer;
  if (layer.mediaType.startsWith('application/vnd.oci.')) return { mediaType: layer.mediaType, digest, size };
  if (layer.mediaType === mediaTypes.dockerLayerGzip)
    return { mediaType: mediaTypes.ociLayerGzip, digest, size };
  const problem = `${JSON.stringify(layer.mediaType)} not allowed in an OCI image`;
  throw new OpmateError('UNSUPPORTED', problem, { subject: `layer ${digest}` });
}

function toStream(bytes: Buffer): Readable {
  return Readable.from(bytes.length === 0 ? [] : [bytes], { objectMode: false });
}
