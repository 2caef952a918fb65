import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { layerOf, writeLayer } from '../../../../src/archive/tar-writer.js';
import { openImage } from '../../../../src/oci/image/image.js';
import {
  type BuildImageOptions,
  buildImage,
  pushImage,
  pushImageIndex,
} from '../../../../src/oci/image/image-builder.js';
import { openLayout } from '../../../../src/oci/layout/layout.js';
import { createRegistryRepository } from '../../../../src/oci/registry/registry-client.js';
import { mediaTypes } from '../../../../src/oci/image/types.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import { hasDockerRegistry, startDockerRegistry } from '../../../support/docker-registry.js';
import { bytesOf, descriptorOf, readAll, streamOf } from '../../../support/images.js';

let bench: Workbench;
beforeEach(async () => {
  bench = await openWorkbench();
});
afterEach(() => bench.close());

const hostPlatform = { os: 'linux', architecture: 'amd64' };
const content = (text: string) => layerOf([{ path: 'configs/index.json', content: Buffer.from(text) }]);
const layout = (name: string) => openLayout(join(bench.home, name), { create: true });

async function options(): Promise<BuildImageOptions> {
  return {
    layers: [await content('{}')],
    labels: { b: '2', a: '1' },
    entrypoint: ['/bin/opm'],
    cmd: ['serve', '/configs'],
  };
}

describe('oci/image-builder', () => {
  it('makes the same bytes of the same parts', async () => {
    const [first, second] = [await buildImage(await options()), await buildImage(await options())];
    expect(second).toEqual(first);
    const turned = await buildImage({ ...(await options()), labels: { a: '1', b: '2' } });
    expect(turned.descriptor).toEqual(first.descriptor);
    const layer = await content('{}');
    expect(JSON.parse(String(first.config))).toEqual({
      created: '1970-01-01T00:00:00Z',
      architecture: 'amd64',
      os: 'linux',
      config: { Entrypoint: ['/bin/opm'], Cmd: ['serve', '/configs'], Labels: { a: '1', b: '2' } },
      rootfs: { type: 'layers', diff_ids: [layer.diffId] },
      history: [{ created: '1970-01-01T00:00:00Z', created_by: 'opmate' }],
    });
    // Without a layer, whose compression may differ between versions of zlib.
    const { descriptor } = await buildImage({ layers: [], labels: { a: '1' } });
    expect(descriptor.digest).toBe('sha256:255d03b25c2b24eedfcfae74c8ea41eb0fde66dc93f501152c9b0eca4ec92bc3');
  });

  it('finds the diff ID of a bare layer', async () => {
    const layer = await content('{}');
    const bare = await buildImage({ ...(await options()), layers: [layer.bytes] });
    expect(bare.descriptor).toEqual((await buildImage(await options())).descriptor);
    expect(descriptorOf(gunzipSync(layer.bytes)).digest).toBe(layer.diffId);
    const failure = await failureOf(buildImage({ layers: [Buffer.from('no gzip')] }));
    expect(failure).toMatchObject({ code: 'INVALID', message: 'layer: not gzip' });
  });

  it('takes a layer from a file, and makes the image that the same layer in memory makes', async () => {
    const file = join(bench.home, 'layer');
    const layer = await writeLayer(file, [{ path: 'configs/index.json', content: Buffer.from('{}') }]);
    const [built, inMemory] = [
      await buildImage({ ...(await options()), layers: [layer] }),
      await buildImage(await options()),
    ];
    expect(built.manifest.equals(inMemory.manifest)).toBe(true);
    const target = await layout('target');
    await pushImage(target, 'v1', built);
    const image = await openImage(target, 'v1', { hostPlatform });
    for (const descriptor of image.manifest.layers) await readAll(await target.openBlob(descriptor));
  });

  it('opens ports besides those of the base, and takes a label of the base away', async () => {
    const target = await layout('ports');
    const base = await buildImage({ layers: [], labels: { a: '1', b: '2' }, exposedPorts: ['80/tcp'] });
    await pushImage(target, 'base', base);
    const built = await buildImage({
      layers: [],
      base: await openImage(target, 'base', { hostPlatform }),
      labels: { a: undefined, c: '3' },
      exposedPorts: ['50051/tcp', '80/tcp'],
    });
    expect(JSON.parse(String(built.config)).config).toEqual({
      ExposedPorts: { '80/tcp': {}, '50051/tcp': {} },
      Labels: { b: '2', c: '3' },
    });
  });

  it('stores images of several platforms as one index', async () => {
    const platforms = ['amd64', 'arm64'].map((architecture) => ({ os: 'linux', architecture }));
    const layer = await content('{}');
    const images = await Promise.all(platforms.map((platform) => buildImage({ layers: [layer], platform })));
    const target = await layout('several');
    const { digest } = await pushImageIndex(target, 'v1', images);
    for (const platform of platforms) {
      const image = await openImage(target, 'v1', { hostPlatform, platform });
      expect(image).toMatchObject({ platform, root: { digest, mediaType: mediaTypes.ociIndex } });
    }
    expect((await pushImageIndex(await layout('again'), 'v2', images)).digest).toBe(digest);
    expect(await target.soleReference()).toBe('v1');
  });

  it('builds on a base, a Docker one too, and takes its layers along', async () => {
    const [source, target] = [await layout('base'), await layout('target')];
    const baseLayer = gzipSync('base');
    const baseConfig = bytesOf({
      architecture: 'arm64',
      os: 'linux',
      variant: 'v8',
      config: {
        Env: ['PATH=/bin'],
        Entrypoint: ['/old'],
        Cmd: ['old'],
        Labels: { a: 'base', c: '3' },
        User: '1001',
      },
      rootfs: { type: 'layers', diff_ids: [descriptorOf('base').digest] },
      history: [{ created_by: 'base' }],
    });
    const manifest = bytesOf({
      schemaVersion: 2,
      mediaType: mediaTypes.dockerManifest,
      config: descriptorOf(baseConfig, mediaTypes.dockerConfig),
      layers: [descriptorOf(baseLayer, mediaTypes.dockerLayerGzip)],
    });
    await source.putBlob(descriptorOf(baseLayer), () => streamOf(baseLayer));
    await source.putBlob(descriptorOf(baseConfig), () => streamOf(baseConfig));
    await source.putManifest('v1', manifest, mediaTypes.dockerManifest);
    const base = await openImage(source, 'v1', { hostPlatform });

    const layer = await content('{}');
    const built = await buildImage({ layers: [layer], labels: { a: '1' }, base, entrypoint: ['/new'] });
    await pushImage(target, 'v2', built);
    const image = await openImage(target, 'v2', { hostPlatform });
    expect(image.descriptor).toEqual(built.descriptor);
    expect(image.platform).toEqual({ os: 'linux', architecture: 'arm64', variant: 'v8' });
    expect({ ...image.labels }).toEqual({ a: '1', c: '3' });
    expect(image.config.config).toMatchObject({ Env: ['PATH=/bin'], User: '1001', Entrypoint: ['/new'] });
    expect(image.config.config?.Cmd).toBeUndefined();
    expect(image.config.rootfs?.diff_ids).toEqual([descriptorOf('base').digest, layer.diffId]);
    expect(image.manifest.layers.map(({ mediaType }) => mediaType)).toEqual([
      mediaTypes.ociLayerGzip,
      mediaTypes.ociLayerGzip,
    ]);
    for (const descriptor of image.manifest.layers) await readAll(await target.openBlob(descriptor));
  });

  it.skipIf(!hasDockerRegistry || spawnSync('skopeo', ['--version']).status !== 0)(
    'makes images that a registry takes and skopeo understands',
    async () => {
      const server = await startDockerRegistry();
      try {
        const connection = bench.connect({ useHttp: true });
        const target = createRegistryRepository({
          connection,
          registry: server.host,
          repository: 'ns/built',
        });
        const built = await buildImage(await options());
        expect(await pushImage(target, 'v1', built)).toEqual(built.descriptor);
        const { stdout } = spawnSync('skopeo', [
          'inspect',
          '--tls-verify=false',
          `docker://${server.host}/ns/built:v1`,
        ]);
        expect(JSON.parse(String(stdout))).toMatchObject({
          Digest: built.descriptor.digest,
          Labels: { a: '1', b: '2' },
          Architecture: 'amd64',
          Created: '1970-01-01T00:00:00Z',
        });
      } finally {
        await server.close();
      }
    },
  );
});
