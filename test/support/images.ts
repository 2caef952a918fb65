/** Small images for tests. */
import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import {
  type Descriptor,
  type ImageIndex,
  type ImageManifest,
  mediaTypes,
} from '../../src/oci/image/types.js';
import type { FaultRegistry } from './fault-registry.js';

export function descriptorOf(
  content: string | Buffer,
  mediaType: string = mediaTypes.ociLayerGzip,
): Descriptor {
  const bytes = Buffer.from(content);
  return {
    mediaType,
    digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}`,
    size: bytes.length,
  };
}

export function bytesOf(document: object): Buffer {
  return Buffer.from(JSON.stringify(document));
}

export async function readAll(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export interface SmallImage {
  config: Buffer;
  layer: Buffer;
  manifest: ImageManifest;
  bytes: Buffer;
  descriptor: Descriptor;
}

export function smallImage(
  options: { architecture?: string; labels?: Record<string, string>; text?: string } = {},
): SmallImage {
  const { architecture = 'amd64', labels = {}, text = `layer for ${architecture}` } = options;
  const config = bytesOf({
    architecture,
    os: 'linux',
    config: { Labels: labels },
    rootfs: { type: 'layers', diff_ids: [] },
  });
  // Real gzip: other tools compress what is not, which changes digests.
  const layer = gzipSync(text);
  const manifest: ImageManifest = {
    schemaVersion: 2,
    mediaType: mediaTypes.ociManifest,
    config: descriptorOf(config, mediaTypes.ociConfig),
    layers: [descriptorOf(layer)],
  };
  const bytes = bytesOf(manifest);
  return { config, layer, manifest, bytes, descriptor: descriptorOf(bytes, mediaTypes.ociManifest) };
}

export function indexOf(manifests: Descriptor[]): { bytes: Buffer; descriptor: Descriptor } {
  const index: ImageIndex = { schemaVersion: 2, mediaType: mediaTypes.ociIndex, manifests };
  const bytes = bytesOf(index);
  return { bytes, descriptor: descriptorOf(bytes, mediaTypes.ociIndex) };
}

/** Serves an image with its blobs; returns the digest of its manifest. */
export function serveImage(
  server: FaultRegistry,
  repository: string,
  tag: string | undefined,
  image: SmallImage,
): string {
  server.serveBlob(repository, image.config);
  server.serveBlob(repository, image.layer);
  return server.serveManifest(repository, tag, image.bytes);
}

export const streamOf = (bytes: Buffer): Readable => Readable.from([bytes], { objectMode: false });
