import path from 'node:path';
import { expect, it, describe } from 'vitest';
import { layerOf } from '../../../src/archive/tar-writer.js';
import { buildImage, pushImage } from '../../../src/oci/image/image-builder.js';
import { openTarget } from '../../../src/oci/image/open.js';
import { pullImage } from '../../../src/api/images/pull-image.js';
import { openSession, parseReference } from '../../../src/index.js';
import { directoryWith } from '../../support/temporary.js';

describe('api/catalogs pullImage', () => {
  it('gives the files of an image, or the part that was asked for', async () => {
    const directory = await directoryWith();
    const session = await openSession({
      environment: {},
      homeDirectory: directory,
      temporaryDirectory: directory,
      architecture: 'x64',
    });
    const lower = await layerOf([
      { path: 'configs/a.yaml', content: Buffer.from('old') },
      { path: 'usr/b', content: Buffer.from('b') },
    ]);
    const upper = await layerOf([{ path: 'configs/a.yaml', content: Buffer.from('new') }]);
    const image = await buildImage({ layers: [lower, upper], labels: { key: 'value' } });
    const reference = `oci:${path.join(directory, 'layout')}:v1`;
    const target = await openTarget(parseReference(reference), session);
    await pushImage(target.repository, target.reference, image);

    const whole = await pullImage(reference, session);
    expect([...whole.files.files.keys()]).toEqual(['configs/a.yaml', 'usr/b']);
    expect({ ...whole.image.labels }).toEqual({ key: 'value' });
    const part = await pullImage(reference, session, { roots: ['/configs'] });
    expect([...part.files.files.keys()]).toEqual(['configs/a.yaml']);
    expect((await part.files.files.get('configs/a.yaml')?.read())?.toString()).toBe('new');
    await session.close();
  });
});
