import path from 'node:path';
import { readFile, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { layerOf, writeLayer } from '../../../../src/archive/tar-writer.js';
import { holdBuiltImages } from '../../../../src/oci/image/built-images.js';
import { copyImage } from '../../../../src/oci/image/copy.js';
import { buildImage, createImageIndex, pushImage } from '../../../../src/oci/image/image-builder.js';
import { openImage } from '../../../../src/oci/image/image.js';
import { openLayout } from '../../../../src/oci/layout/layout.js';
import type { Descriptor } from '../../../../src/oci/image/types.js';
import { failureOf } from '../../../support/connect.js';
import { descriptorOf, readAll } from '../../../support/images.js';
import { directoryWith } from '../../../support/temporary.js';

const hostPlatform = { os: 'linux', architecture: 'amd64' };

/** An image on a base in a layout, with one layer in memory and one in a file. */
async function builtOnBase() {
  const directory = await directoryWith();
  const repository = await openLayout(path.join(directory, 'base'), { create: true });
  const lowest = await layerOf([{ path: 'lowest', content: Buffer.from('1') }]);
  await pushImage(repository, 'v1', await buildImage({ layers: [lowest] }));
  const base = await openImage(repository, 'v1', { hostPlatform });
  const inMemory = await layerOf([{ path: 'memory', content: Buffer.from('2') }]);
  const inFile = await writeLayer(path.join(directory, 'layer'), [
    { path: 'file', content: Buffer.from('3') },
  ]);
  const image = await buildImage({ base, layers: [inMemory, inFile], labels: { a: '1' } });
  return { directory, image, base, inFile };
}

describe('oci/built-images', () => {
  it('hands out an image with the layers of its base', async () => {
    const { directory, image, base } = await builtOnBase();
    const index = createImageIndex([image]);
    const built = holdBuiltImages('base', [image], index);
    const target = await openLayout(path.join(directory, 'out'), { create: true });
    const { descriptor } = await copyImage(built, index.descriptor.digest, target, 'v2');
    expect(descriptor).toMatchObject(index.descriptor);
    const copied = await openImage(target, 'v2', { hostPlatform });
    expect(copied.manifest.layers).toHaveLength(3);
    expect(copied.labels['a']).toBe('1');
    expect(await built.headManifest(image.descriptor.digest)).toEqual(image.descriptor);
    expect(await built.hasBlob(base.manifest.layers[0] as Descriptor)).toBe(true);
    expect(await built.hasBlob(image.configDescriptor)).toBe(true);
    expect(await built.listTags()).toEqual([]);
    expect(await built.listReferrers('sha256:0')).toEqual([]);
  });

  it('has nothing else', async () => {
    const { image, base } = await builtOnBase();
    const built = holdBuiltImages('base', [image]);
    // The base's own manifest and configuration are no part of it.
    const other = base.manifest.config;
    expect(await built.hasBlob(other)).toBe(false);
    expect(await built.headManifest(base.descriptor.digest)).toBeUndefined();
    expect(await failureOf(built.openBlob(other))).toMatchObject({
      code: 'NOT_FOUND',
      message: `base@${other.digest}: not found`,
    });
    expect(await failureOf(built.getManifest('v1'))).toMatchObject({
      code: 'NOT_FOUND',
      message: 'base:v1: not found',
    });
    const signal = AbortSignal.abort();
    expect(await failureOf(built.openBlob(image.configDescriptor, { signal }))).toMatchObject({
      code: 'CANCELLED',
    });
  });

  it('notices that a layer in a file is not what it was', async () => {
    const { image, inFile } = await builtOnBase();
    const built = holdBuiltImages('base', [image]);
    const descriptor = { ...descriptorOf(''), digest: inFile.digest, size: inFile.size };
    const bytes = await readFile(inFile.file);
    expect(await readAll(await built.openBlob(descriptor))).toEqual(bytes);
    bytes[bytes.length - 1] = 1 + (bytes.at(-1) ?? 0);
    await writeFile(inFile.file, bytes);
    expect(await failureOf(readAll(await built.openBlob(descriptor)))).toMatchObject({ code: 'DIGEST' });
    await writeFile(inFile.file, '');
    expect(await failureOf(readAll(await built.openBlob(descriptor)))).toMatchObject({ code: 'DIGEST' });
  });
});
