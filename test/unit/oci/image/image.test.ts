import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openImage, readBlob } from '../../../../src/oci/image/image.js';
import { createRegistryRepository } from '../../../../src/oci/registry/registry-client.js';
import { mediaTypes } from '../../../../src/oci/image/types.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import { type FaultRegistry, startFaultRegistry } from '../../../support/fault-registry.js';
import { bytesOf, descriptorOf, indexOf, readAll, serveImage, smallImage } from '../../../support/images.js';

let server: FaultRegistry;
let bench: Workbench;
beforeAll(async () => {
  server = await startFaultRegistry();
  bench = await openWorkbench();
});
afterAll(async () => {
  await bench.close();
  await server.close();
});
const hostPlatform = { os: 'linux', architecture: 'amd64' };
const open = () =>
  createRegistryRepository({
    connection: bench.connect({ useHttp: true }),
    registry: server.host,
    repository: 'ns/name',
  });

describe('oci/image', () => {
  it('opens an image with its labels, and reads layers from its repository', async () => {
    const image = smallImage({ labels: { a: 'b', __proto__x: '' } });
    serveImage(server, 'ns/name', 'v1', image);
    const opened = await openImage(open(), 'v1', { hostPlatform });
    expect(opened).toMatchObject({
      name: `${server.host}/ns/name:v1`,
      root: image.descriptor,
      descriptor: image.descriptor,
      manifest: image.manifest,
      platform: hostPlatform,
    });
    expect(opened.labels).toEqual(Object.assign(Object.create(null), { a: 'b', __proto__x: '' }));
    expect(opened.labels.constructor).toBeUndefined();
    const layer = opened.manifest.layers[0];
    expect(layer && (await readAll(await opened.repository.openBlob(layer)))).toEqual(image.layer);
  });

  it('looks a tag up once, even if it moves meanwhile', async () => {
    const [first, second] = [
      smallImage({ text: 'first' }),
      smallImage({ architecture: 'arm64', text: 'second' }),
    ];
    for (const image of [first, second]) serveImage(server, 'ns/name', undefined, image);
    const answers = [first, second].map(({ descriptor }) => {
      const index = indexOf([{ ...descriptor, platform: hostPlatform }]);
      return { headers: { 'content-type': mediaTypes.ociIndex }, body: index.bytes };
    });
    server.on({ path: '/v2/ns/name/manifests/moving', respond: answers });
    const opened = await openImage(open(), 'moving', { hostPlatform });
    expect(opened.descriptor.digest).toBe(first.descriptor.digest);
    expect(opened.root.mediaType).toBe(mediaTypes.ociIndex);
    expect(server.requests.filter(({ path }) => path.endsWith('/moving')).length).toBe(1);
  });

  it('opens Docker images', async () => {
    const config = bytesOf({ architecture: 'amd64', os: 'linux', config: { Labels: { a: 'b' } } });
    server.serveBlob('ns/name', config);
    const manifest = bytesOf({
      schemaVersion: 2,
      mediaType: mediaTypes.dockerManifest,
      config: descriptorOf(config, mediaTypes.dockerConfig),
      layers: [descriptorOf(gzipSync(''), mediaTypes.dockerLayerGzip)],
    });
    server.serveManifest('ns/name', 'docker', manifest, mediaTypes.dockerManifest);
    const opened = await openImage(open(), 'docker', { hostPlatform });
    expect(opened.labels.a).toBe('b');
    expect(opened.descriptor.mediaType).toBe(mediaTypes.dockerManifest);
  });

  it('refuses an artifact that is no image', async () => {
    const manifest = bytesOf({
      schemaVersion: 2,
      mediaType: mediaTypes.ociManifest,
      artifactType: 'application/x-sbom',
      config: descriptorOf('{}', mediaTypes.ociEmpty),
      layers: [],
    });
    server.serveManifest('ns/name', 'artifact', manifest);
    const failure = await failureOf(openImage(open(), 'artifact', { hostPlatform }));
    expect(failure.code).toBe('UNSUPPORTED');
    expect(failure.message).toBe(
      `${server.host}/ns/name:artifact: an artifact of type "application/x-sbom", not an image`,
    );
  });

  it('refuses a configuration that is too large, other than promised, or no JSON', async () => {
    const image = smallImage();
    const withConfig = (tag: string, config: object) =>
      server.serveManifest('ns/name', tag, bytesOf({ ...image.manifest, config }));
    withConfig('large', { ...image.manifest.config, size: 2 ** 40 });
    withConfig('junk', descriptorOf('junk', mediaTypes.ociConfig));
    withConfig('size', { ...image.manifest.config, size: 3 });
    server.serveBlob('ns/name', 'junk');
    server.serveBlob('ns/name', image.config);
    const failure = async (tag: string) => failureOf(openImage(open(), tag, { hostPlatform }));
    expect(await failure('large')).toMatchObject({ code: 'LIMIT' });
    expect(await failure('junk')).toMatchObject({ code: 'SYNTAX' });
    expect(await failure('size')).toMatchObject({ code: 'DIGEST' });
    expect(await failureOf(readBlob(open(), image.manifest.config, 3))).toMatchObject({ code: 'LIMIT' });
  });
});
