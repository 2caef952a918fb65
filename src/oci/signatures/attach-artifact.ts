import { Readable } from 'node:stream';
import type { CancelOptions } from '../../core/concurrency.js';
import { computeDigest } from '../../core/digest.js';
import { type Descriptor, type ImageManifest, mediaTypes } from '../image/types.js';
import type { WritableRepository } from '../registry/repository.js';

/** Content to attach to an image. */
export interface Artifact {
  /** Descriptor of the content; its media type is also the artifact type. */
  descriptor: Descriptor;
  /** May be called again after a failed attempt. */
  open: () => Readable;
  /** RFC 3339. */
  created: string;
}

/**
 * Attaches content to an image by an artifact manifest with the image as `subject`. Equal content is attached once. Throws
 * the errors of storing blobs and manifests. (Source: OCI image specification 1.1, "Guidelines for Artifact Usage".)
 */
export async function attachArtifact(
  repository: WritableRepository,
  { mediaType, digest, size }: Descriptor,
  { descriptor, open, created }: Artifact,
  options: CancelOptions,
): Promise<Descriptor> {
  await repository.putBlob(descriptor, open, options);
  const manifest: ImageManifest = {
    schemaVersion: 2,
    mediaType: mediaTypes.ociManifest,
    artifactType: descriptor.mediaType,
    config: await putBytes(repository, mediaTypes.ociEmpty, Buffer.from('{}'), options),
    layers: [descriptor],
    subject: { mediaType, digest, size },
    annotations: { 'org.opencontainers.image.created': created },
  };
  const bytes = Buffer.from(JSON.stringify(manifest));
  return repository.putManifest(computeDigest(bytes), bytes, mediaTypes.ociManifest, options);
}

/** Stores bytes as a blob; returns its descriptor. */
export async function putBytes(
  repository: WritableRepository,
  mediaType: string,
  bytes: Buffer,
  options: CancelOptions,
): Promise<Descriptor> {
  const descriptor = { mediaType, digest: computeDigest(bytes), size: bytes.length };
  await repository.putBlob(descriptor, () => Readable.from([bytes], { objectMode: false }), options);
  return descriptor;
}
