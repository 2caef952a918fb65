import { type KeyObject, createPublicKey } from 'node:crypto';
import type { CancelOptions } from '../../core/concurrency.js';
import { computeDigest } from '../../core/digest.js';
import { cosignSignatureType } from '../../trust/simple-signing.js';
import { signDetached, verifyDetached } from '../../trust/signing-key.js';
import { readContents } from '../image/contents.js';
import { type Descriptor, type ImageManifest, mediaTypes } from '../image/types.js';
import type { WritableRepository } from '../registry/repository.js';
import { putBytes } from './attach-artifact.js';
import { findManifest, signatureAnnotation, signatureTag, simpleSigningType } from './attached-signatures.js';

/**
 * Signs an image as `cosign sign --recursive`: also every image of an index, since clients verify the manifest that they
 * run. A signature is added under the `.sig` tag, unless one of the same key and document exists. `reference` is the name
 * that it states. Throws the errors of reading and storing manifests.
 */
export async function signImage(
  repository: WritableRepository,
  digest: string,
  { reference, key, ...options }: { reference: string; key: KeyObject } & CancelOptions,
): Promise<void> {
  const { manifests } = await readContents(repository, digest, options);
  for (const { descriptor } of manifests) {
    await signManifest(repository, descriptor.digest, { reference, key, ...options });
  }
}

async function signManifest(
  repository: WritableRepository,
  digest: string,
  { reference, key, ...options }: { reference: string; key: KeyObject } & CancelOptions,
): Promise<void> {
  const payload = Buffer.from(
    JSON.stringify({
      critical: {
        identity: { 'docker-reference': reference },
        image: { 'docker-manifest-digest': digest },
        type: cosignSignatureType,
      },
      optional: null,
    }),
  );
  const tag = signatureTag(digest);
  const layers = (await findManifest(repository, tag, options))?.layers ?? [];
  const publicKey = createPublicKey(key);
  const isSigned = layers.some(
    (layer) =>
      layer.digest === computeDigest(payload) &&
      verifyDetached(payload, layer.annotations?.[signatureAnnotation] ?? '', publicKey),
  );
  if (isSigned) return;
  const layer: Descriptor = {
    ...(await putBytes(repository, simpleSigningType, payload, options)),
    annotations: { [signatureAnnotation]: signDetached(payload, key).trim() },
  };
  await putSignatureManifest(repository, tag, [...layers, layer], options);
}

async function putSignatureManifest(
  repository: WritableRepository,
  tag: string,
  layers: readonly Descriptor[],
  options: CancelOptions,
): Promise<void> {
  // As cosign writes it: with all layers, so engines accept the signature as an image.
  const none = '0001-01-01T00:00:00Z';
  const config = Buffer.from(
    JSON.stringify({
      architecture: '',
      created: none,
      history: layers.map(() => ({ created: none })),
      os: '',
      rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => digest) },
      config: {},
    }),
  );
  const descriptor = await putBytes(repository, mediaTypes.ociConfig, config, options);
  const manifest: ImageManifest = {
    schemaVersion: 2,
    mediaType: mediaTypes.ociManifest,
    config: descriptor,
    layers: [...layers],
  };
  await repository.putManifest(tag, Buffer.from(JSON.stringify(manifest)), mediaTypes.ociManifest, options);
}
