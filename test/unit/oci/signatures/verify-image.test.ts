import { createPrivateKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parseReference } from '../../../../src/core/reference.js';
import { readSignaturePolicy } from '../../../../src/mirror/verification/signature-policy.js';
import { type ImageContents, readContents } from '../../../../src/oci/image/contents.js';
import { buildImage, pushImage } from '../../../../src/oci/image/image-builder.js';
import { type Descriptor, mediaTypes } from '../../../../src/oci/image/types.js';
import { type LayoutRepository, openLayout } from '../../../../src/oci/layout/layout.js';
import { signImage } from '../../../../src/oci/signatures/sign-image.js';
import { findUnsignedManifest, verifyImage } from '../../../../src/oci/signatures/verify-image.js';
import { failureOf } from '../../../support/connect.js';
import { indexOf } from '../../../support/images.js';
import { pemPair } from '../../../support/sigstore.js';
import { directoryWith } from '../../../support/temporary.js';

const own = pemPair();
const reference = parseReference('quay.io/ns/name:v1');

/** Stores a signed and an unsigned image, and an index tagged `v1` of both, made by `list`. */
async function storeIndex(list: (signed: Descriptor, unsigned: Descriptor) => Descriptor[]) {
  const layout = await openLayout(await directoryWith(), { create: true });
  const descriptors = [];
  for (const architecture of ['arm64', 'amd64']) {
    const image = await buildImage({ layers: [], labels: {}, platform: { os: 'linux', architecture } });
    const { digest, size, mediaType } = await pushImage(layout, architecture, image);
    descriptors.push({ mediaType, digest, size, platform: { os: 'linux', architecture } });
  }
  const [signed, unsigned] = descriptors as [Descriptor, Descriptor];
  const key = createPrivateKey(own.privateKey);
  await signImage(layout, signed.digest, { reference: 'quay.io/ns/name:v1', key });
  await layout.putManifest('v1', indexOf(list(signed, unsigned)).bytes, mediaTypes.ociIndex);
  return { layout, signed, unsigned };
}

async function verify(layout: LayoutRepository, contents: ImageContents) {
  const policy = await readSignaturePolicy(
    { keys: ['own.pub'] },
    await directoryWith({ 'own.pub': own.publicKey }),
  );
  return verifyImage(layout, contents, { policy, reference, now: new Date() });
}

describe('verifyImage', () => {
  it('verifies an index of which each entry is signed', async () => {
    const { layout } = await storeIndex((signed) => [signed]);
    const contents = await readContents(layout, 'v1');
    expect(await verify(layout, contents)).toMatchObject({ status: 'verified' });
    expect(await findUnsignedManifest(layout, contents, {})).toBeUndefined();
  });

  it.each([
    `${mediaTypes.ociManifest}; charset=utf-8`,
    'application/vnd.OCI.image.manifest.v1+json',
    mediaTypes.ociManifest,
  ])('counts an unsigned entry of type %s', async (mediaType) => {
    const { layout, unsigned } = await storeIndex((signed, other) => [signed, { ...other, mediaType }]);
    const contents = await readContents(layout, 'v1');
    expect(await verify(layout, contents)).toMatchObject({ status: 'unsigned' });
    expect(await findUnsignedManifest(layout, contents, {})).toBe(unsigned.digest);
  });

  it.each(['application/octet-stream', 'application/vnd.docker.distribution.manifest.v1+json'])(
    'gets no contents of an index that hides an image as %s',
    async (mediaType) => {
      const { layout } = await storeIndex((signed, other) => [signed, { ...other, mediaType }]);
      expect(await failureOf(readContents(layout, 'v1'))).toMatchObject({ code: 'UNSUPPORTED' });
    },
  );

  it('counts entries that known contents leave out, as a forged lock may', async () => {
    const { layout, unsigned } = await storeIndex((signed, other) => [signed, other]);
    const { root, manifests } = await readContents(layout, 'v1');
    const kept = manifests
      .filter(({ descriptor }) => descriptor.digest !== unsigned.digest)
      .map(({ descriptor, blobs, manifests: listed }) => {
        return { descriptor, blobs, manifests: listed.filter((digest) => digest !== unsigned.digest) };
      });
    const contents = { root, manifests: kept };
    expect(await verify(layout, contents)).toMatchObject({ status: 'unsigned' });
    expect(await findUnsignedManifest(layout, contents, {})).toBe(unsigned.digest);
  });

  it('counts an entry marked as an attestation, which clients may run by its platform', async () => {
    const annotations = { 'vnd.docker.reference.type': 'attestation-manifest' };
    const { layout } = await storeIndex((signed, other) => [signed, { ...other, annotations }]);
    expect(await verify(layout, await readContents(layout, 'v1'))).toMatchObject({ status: 'unsigned' });
  });
});
