import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import type { Layer, LayerFile } from '../../archive/tar-writer.js';
import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { computeDigest } from '../../core/digest.js';
import { OpmateError } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { type JsonObject, isJsonObject, setJsonKey } from '../../document/json.js';
import { defaultCopyConcurrency } from './copy.js';
import { type Image, openImage, readBlob } from './image.js';
import { isIndexType, parseManifest } from './manifest.js';
import {
  type PlatformChoice,
  choosePlatform,
  formatPlatform,
  isAttestation,
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
} from './types.js';

/** When an image was made that nobody has told a time for. */
export const defaultCreated = '1970-01-01T00:00:00Z';

export interface BuildImageOptions {
  /** Gzip-compressed tar archives, bottom first; a bare Buffer is unpacked once for its diff ID. */
  layers: readonly (Layer | LayerFile | Buffer)[];
  /** What the history says of each of them; `opmate` unless told. */
  createdBy?: readonly string[] | undefined;
  /** Added to the base's; undefined takes one of the base's away. */
  labels?: Readonly<Record<string, string | undefined>> | undefined;
  /** The base's, or linux/amd64, unless told. */
  platform?: Platform | undefined;
  /** RFC 3339; 1970 unless told, so that equal inputs make equal images. */
  created?: string | undefined;
  /** Replaces the base's; its command goes with it. */
  entrypoint?: readonly string[] | undefined;
  cmd?: readonly string[] | undefined;
  /** Added to the base's, e.g. `50051/tcp`. */
  exposedPorts?: readonly string[] | undefined;
  /** Its layers come first, and its configuration is the starting point. */
  base?: Image | undefined;
  /** The base's whole configuration: what of it opmate does not know is kept (`readWholeConfig`). */
  baseConfig?: JsonObject | undefined;
}

/** An image in memory; the base's layers, and those in files, are still where they were. */
export interface BuiltImage {
  /** Of the manifest. */
  descriptor: Descriptor;
  manifest: Buffer;
  config: Buffer;
  configDescriptor: Descriptor;
  platform: Platform;
  /** The new layers. */
  layers: { descriptor: Descriptor; bytes: Buffer }[];
  /** Those of the new layers that are in files, which must stay there until the image is pushed. */
  layerFiles: { descriptor: Descriptor; file: string }[];
  base: Image | undefined;
}

/**
 * Opens the images that an image is to be built on: all that a multi-platform base has for Linux, in its order,
 * or only that of `platform`. Throws OpmateError UNSUPPORTED for an index within the base's, which needs a
 * `platform`; NOT_FOUND for a base without any image; and what opening throws.
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
    throw new OpmateError('UNSUPPORTED', 'not an index of one image a platform', {
      subject,
      hint: 'select a platform with --platform',
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

/**
 * Those of opened bases that are for `platforms`, in their own order. `subject` is how messages name what they were
 * opened from. Throws OpmateError NOT_FOUND for a platform that none is for.
 */
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
    const offered = [...new Set(images.map((image) => formatPlatform(image.platform)))]
      .slice(0, 10)
      .join(', ');
    throw new OpmateError('NOT_FOUND', `no image for ${formatPlatform(platform)}, only ${offered}`, {
      subject,
    });
  });
  return images.filter((_, index) => chosen.includes(index));
}

/** More than there are; each costs a copy of the base. */
const maxPlatforms = 32;

/** The configuration of an image that was opened, with all its fields. Throws what opening the blob throws. */
export async function readWholeConfig(image: Image, options: CancelOptions = {}): Promise<JsonObject> {
  const { repository, manifest } = image;
  const bytes = await readBlob(repository, manifest.config, maxManifestBytes, options);
  // Opening the image has checked that it is an object, and that no key is duplicate.
  return JSON.parse(bytes.toString()) as JsonObject;
}

/** Fields beside the image's `config` that say something about the image and not about how it was made. */
const furtherFields: readonly string[] = ['author', 'os.version', 'os.features'];

function pick(object: JsonObject | undefined, isWanted: (key: string) => boolean): JsonObject {
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(object ?? {})) if (isWanted(key)) setJsonKey(result, key, value);
  return result;
}

/**
 * Makes an OCI image whose bytes depend on the options alone. Throws OpmateError INVALID for a layer that is
 * not gzip and UNSUPPORTED for a layer type of the base that OCI has no name for.
 */
export async function buildImage(options: BuildImageOptions): Promise<BuiltImage> {
  const { base, created = defaultCreated } = options;
  const layers = await Promise.all(options.layers.map(describeLayer));
  const platform = options.platform ?? base?.platform ?? { os: 'linux', architecture: 'amd64' };
  const baseLayers = base?.manifest.layers ?? [];
  const baseIds = base?.config.rootfs?.diff_ids ?? [];
  if (baseIds.length !== baseLayers.length) {
    throw new OpmateError(
      'INVALID',
      `its configuration names ${baseIds.length} layers, not ${baseLayers.length}`,
      { subject: base?.name },
    );
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
  const configDescriptor = describe(mediaTypes.ociConfig, configBytes);
  const manifest: ImageManifest = {
    schemaVersion: 2,
    mediaType: mediaTypes.ociManifest,
    config: configDescriptor,
    layers: [...baseLayers.map(toOci), ...layers.map((layer) => layer.descriptor)],
  };
  const bytes = Buffer.from(JSON.stringify(manifest));
  return {
    descriptor: describe(mediaTypes.ociManifest, bytes),
    manifest: bytes,
    config: configBytes,
    configDescriptor,
    platform,
    layers: layers.flatMap(({ descriptor, bytes }) => (bytes === undefined ? [] : [{ descriptor, bytes }])),
    layerFiles: layers.flatMap(({ descriptor, file }) => (file === undefined ? [] : [{ descriptor, file }])),
    base,
  };
}

/** Stores a built image, the base's layers included, under a tag or its digest; the manifest comes last. */
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
    ...image.layers.map(({ descriptor, bytes }) => ({ descriptor, open: () => toStream(bytes) })),
    ...image.layerFiles.map(({ descriptor, file }) => ({
      descriptor,
      open: () => createReadStream(file, { highWaterMark: 256 * 1024 }),
    })),
    { descriptor: image.configDescriptor, open: () => toStream(image.config) },
  ];
  const unique = new Map(blobs.map((blob) => [blob.descriptor.digest, blob]));
  await mapConcurrent(
    [...unique.values()],
    defaultCopyConcurrency,
    ({ descriptor, open }) => target.putBlob(descriptor, open, options),
    options,
  );
  return target.putManifest(reference, image.manifest, mediaTypes.ociManifest, options);
}

/**
 * Stores images that differ in their platform as one index under a tag; the index comes last. Its bytes depend
 * on the images alone.
 */
export async function pushImageIndex(
  target: WritableRepository,
  reference: string,
  images: readonly BuiltImage[],
  options: CancelOptions = {},
): Promise<Descriptor> {
  for (const image of images) await pushImage(target, image.descriptor.digest, image, options);
  return target.putManifest(reference, buildIndex(images).bytes, mediaTypes.ociIndex, options);
}

/** The index of images that differ in their platform. Its bytes depend on the images alone. */
export function buildIndex(images: readonly BuiltImage[]): ManifestContent {
  const manifests = images.map(({ descriptor, platform }) => ({ ...descriptor, platform }));
  const index: ImageIndex = { schemaVersion: 2, mediaType: mediaTypes.ociIndex, manifests };
  const bytes = Buffer.from(JSON.stringify(index));
  return { descriptor: describe(mediaTypes.ociIndex, bytes), bytes };
}

/** What images are known by once they are stored: one by its manifest, several by their index. */
export function describeImages(images: readonly BuiltImage[]): Descriptor {
  const [first, ...others] = images;
  return first !== undefined && others.length === 0 ? first.descriptor : buildIndex(images).descriptor;
}

/** What this module writes itself. */
const ownFields: ReadonlySet<string> = new Set(['Labels', 'Entrypoint', 'Cmd', 'ExposedPorts']);

function runConfig(options: BuildImageOptions): NonNullable<ImageConfig['config']> {
  const { base, labels, entrypoint, cmd, exposedPorts = [] } = options;
  const { Labels, Entrypoint, Cmd, ExposedPorts, ...inherited } = base?.config.config ?? {};
  const merged: Record<string, string> = {};
  const combined = { ...Labels, ...labels };
  for (const name of sortedByBytes(Object.keys(combined))) {
    const value = combined[name];
    if (value !== undefined) setJsonKey(merged, name, value);
  }
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
): Promise<{ descriptor: Descriptor; bytes?: Buffer; file?: string; diffId: string }> {
  if (!Buffer.isBuffer(layer)) {
    const { digest, size, diffId, ...content } = layer;
    return { descriptor: { mediaType: mediaTypes.ociLayerGzip, digest, size }, ...content, diffId };
  }
  const hash = createHash('sha256');
  try {
    await pipeline(toStream(layer), createGunzip(), hash);
  } catch (cause) {
    throw new OpmateError('INVALID', 'layer: not gzip', { cause });
  }
  return {
    descriptor: describe(mediaTypes.ociLayerGzip, layer),
    bytes: layer,
    diffId: `sha256:${hash.digest('hex')}`,
  };
}

function describe(mediaType: string, bytes: Buffer): Descriptor {
  return { mediaType, digest: computeDigest(bytes), size: bytes.length };
}

/** The same layer under its OCI name; Docker's has the same bytes. */
function toOci(layer: Descriptor): Descriptor {
  const { digest, size } = layer;
  if (layer.mediaType.startsWith('application/vnd.oci.')) return { mediaType: layer.mediaType, digest, size };
  if (layer.mediaType === mediaTypes.dockerLayerGzip)
    return { mediaType: mediaTypes.ociLayerGzip, digest, size };
  throw new OpmateError(
    'UNSUPPORTED',
    `layer ${digest}: ${JSON.stringify(layer.mediaType)} cannot be part of an OCI image`,
  );
}

function toStream(bytes: Buffer): Readable {
  return Readable.from(bytes.length === 0 ? [] : [bytes], { objectMode: false });
}
