import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { readContents } from '../../../src/oci/image/contents.js';
import { buildImage, createImageIndex, pushImage } from '../../../src/oci/image/image-builder.js';
import { openLayout } from '../../../src/oci/layout/layout.js';
import { readPayload } from '../../../src/release/payload.js';
import { failureOf } from '../../support/connect.js';
import { bootImages, imageReferences, payloadOf } from '../../support/releases.js';
import { type RawEntry, rawTar } from '../../support/tar.js';
import { directoryWith } from '../../support/temporary.js';

const etcd = payloadOf('etcd', 'quay.io/demo/parts');
const pod = payloadOf('pod', 'quay.io/demo/parts');
const references = imageReferences('4.1.0', { etcd, pod, 'also-pod': pod });
const files = (content: string): RawEntry[] => [{ name: 'release-manifests/image-references', content }];

/** Reads the payload of an image of these layers, lowest first. */
async function read(layers: RawEntry[][], kubeVirt?: string[]) {
  const repository = await openLayout(path.join(await directoryWith(), 'layout'), { create: true });
  const image = await buildImage({ layers: layers.map((entries) => gzipSync(rawTar(entries))) });
  await pushImage(repository, 'v1', image);
  const opened: string[] = [];
  const watched = Object.create(repository) as typeof repository;
  watched.openBlob = (blob, options) => {
    opened.push(blob.digest);
    return repository.openBlob(blob, options);
  };
  const payload = await readPayload(watched, await readContents(repository, 'v1'), { kubeVirt });
  return {
    version: payload.version,
    components: payload.components.map(({ name, image: { digest } }) => `${name} ${digest}`),
    opened: opened.length,
  };
}

const digestIn = (reference: string): string => reference.slice(reference.indexOf('@') + 1);

describe('release/payload', () => {
  it('reads the components in payload order, and no layer below the one that lists them', async () => {
    expect(await read([[{ name: 'usr/bin/x' }], files(references)])).toEqual({
      version: '4.1.0',
      components: [`etcd ${digestIn(etcd)}`, `pod ${digestIn(pod)}`, `also-pod ${digestIn(pod)}`],
      opened: 1,
    });
  });

  it('reads the file from the topmost layer that contains it', async () => {
    const older = files(imageReferences('4.0.0', { etcd }));
    expect((await read([older, files(references)])).version).toBe('4.1.0');
    expect(await read([older, [{ name: 'etc/x' }], [{ name: 'etc/y' }]])).toMatchObject({
      version: '4.0.0',
      opened: 3,
    });
  });

  it.each([
    '.wh.release-manifests',
    'release-manifests/.wh.image-references',
    'release-manifests/.wh..wh..opq',
  ])('does not look below a layer with %s', async (name) => {
    const fault = await failureOf(read([files(references), [{ name }]]));
    expect(fault).toMatchObject({ code: 'INVALID' });
    expect(fault.message).toContain('release-manifests/image-references not found');
    expect((await read([files('x'), [{ name }, ...files(references)]])).version).toBe('4.1.0');
  });

  it('adds KubeVirt disks, by key if several are selected', async () => {
    const disk = payloadOf('disk', 'quay.io/demo/parts');
    const boot: RawEntry = {
      name: 'release-manifests/0000_50_installer_coreos-bootimages.yaml',
      content: bootImages({ x86_64: disk }),
    };
    const layers = [[...files(references), boot]];
    const named = (one: { components: string[] }): string | undefined => one.components[3];
    expect(named(await read(layers, ['x86_64']))).toBe(`kube-virt-container ${digestIn(disk)}`);
    expect(named(await read(layers, ['x86_64', 's390x']))).toBe(
      `kube-virt-container-x86_64 ${digestIn(disk)}`,
    );
    expect(await failureOf(read(layers, ['s390x']))).toMatchObject({ code: 'NOT_FOUND' });
    expect(await failureOf(read([files(references)], ['s390x']))).toMatchObject({ code: 'NOT_FOUND' });
  });

  it('reads the first image of an index', async () => {
    const repository = await openLayout(path.join(await directoryWith(), 'layout'), { create: true });
    const images = await Promise.all(
      ['4.1.0', '4.1.1'].map((version, i) =>
        buildImage({
          layers: [gzipSync(rawTar(files(imageReferences(version, { etcd }))))],
          platform: { os: 'linux', architecture: i === 0 ? 'arm64' : 'amd64' },
        }),
      ),
    );
    for (const image of images) await pushImage(repository, image.descriptor.digest, image);
    const { bytes, descriptor } = createImageIndex(images);
    await repository.putManifest('v1', bytes, descriptor.mediaType);
    const payload = await readPayload(repository, await readContents(repository, 'v1'), {});
    expect(payload.version).toBe('4.1.0');
  });

  it.each([
    ['no JSON', 'image-references: invalid JSON'],
    ['{"kind":"Pod"}', 'ImageStream'],
    [imageReferences('4.1.0', {}), 'no components'],
    [imageReferences('4.1.0', { etcd: 'quay.io/demo/parts:v1' }), 'by digest'],
    [imageReferences('4.1.0', { 'not a tag': etcd }), 'the name of a component'],
    [references.replace('also-pod', 'etcd'), 'duplicate component etcd'],
  ])('refuses image-references %s', async (content, words) => {
    expect((await failureOf(read([files(content)]))).message).toContain(words);
  });

  it('refuses a payload that is truncated, a link or not a file', async () => {
    const link = { name: 'release-manifests/image-references', flag: '2', linkName: '/etc/passwd' };
    expect(await failureOf(read([[link]]))).toMatchObject({ code: 'UNSUPPORTED' });
    const directory = { name: 'release-manifests', flag: '2', linkName: '/etc' };
    expect(await failureOf(read([[directory]]))).toMatchObject({ code: 'UNSUPPORTED' });
    const cut = { ...(files(references)[0] as RawEntry), size: 100_000 };
    expect(await failureOf(read([[cut]]))).toMatchObject({ code: 'SYNTAX' });
  });
});
