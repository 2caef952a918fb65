import path from 'node:path';
import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { layerOf } from '../../../../src/archive/tar-writer.js';
import { openDockerArchive, openOciArchive } from '../../../../src/oci/archive-set/archive-source.js';
import { saveDockerArchive } from '../../../../src/oci/image/docker-archive.js';
import { openImage } from '../../../../src/oci/image/image.js';
import { buildImage } from '../../../../src/oci/image/image-builder.js';
import { openLayout } from '../../../../src/oci/layout/layout.js';
import { makeImage, storeImage } from '../../../e2e/images.js';
import { failureOf } from '../../../support/connect.js';
import { readAll } from '../../../support/images.js';
import { directoryWith } from '../../../support/temporary.js';

async function imageOnBase() {
  const directory = await directoryWith();
  await storeImage(directory, 'v1', await makeImage({ files: { 'bin/opm': 'opm' }, labels: { a: '1' } }));
  const base = await openImage(await openLayout(directory), 'v1', {
    hostPlatform: { os: 'linux', architecture: 'amd64' },
  });
  return buildImage({ base, layers: [await layerOf([{ path: 'data', content: Buffer.from('data') }])] });
}

describe('oci/docker-archive', () => {
  it('saves an image that is the same as what docker saves and as a layout', async () => {
    const image = await imageOnBase();
    const directory = await directoryWith();
    const file = path.join(directory, 'image.tar');
    const name = 'reg.example:5000/ns/index:v1';
    const saved = await saveDockerArchive(image, file, { name, directory });
    expect(saved.digest).toBe(image.descriptor.digest);
    for (const [open, reference] of [
      [openDockerArchive, name],
      [openOciArchive, name],
    ] as const) {
      const archive = await open(file);
      try {
        const { descriptor, bytes } = await archive.getManifest(reference);
        expect(descriptor.digest).toBe(image.descriptor.digest);
        const { layers } = JSON.parse(bytes.toString()) as { layers: (typeof descriptor)[] };
        expect(layers).toHaveLength(2);
        for (const layer of layers)
          expect(await readAll(await archive.openBlob(layer))).toHaveLength(layer.size);
      } finally {
        await archive.close();
      }
    }
    const again = path.join(directory, 'again.tar');
    await saveDockerArchive(image, again, { name, directory: await directoryWith() });
    expect((await readFile(again)).equals(await readFile(file))).toBe(true);
  });

  it('leaves the file that is there when it cannot be done', async () => {
    const directory = await directoryWith({ 'image.tar': 'old' });
    const file = path.join(directory, 'image.tar');
    const image = await imageOnBase();
    expect(
      await failureOf(saveDockerArchive(image, file, { directory, signal: AbortSignal.abort() })),
    ).toMatchObject({ code: 'CANCELLED' });
    expect(await readFile(file, 'utf8')).toBe('old');
  });
});
