import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { copyImage } from '../../../../src/oci/image/copy.js';
import {
  createRegistryRepository,
  type RegistryRepository,
} from '../../../../src/oci/registry/registry-client.js';
import { type Descriptor, mediaTypes } from '../../../../src/oci/image/types.js';
import { type Registry, startRegistry } from '../../../../src/serve/registry/registry.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import { bytesOf, descriptorOf, indexOf, readAll, smallImage, streamOf } from '../../../support/images.js';

let bench: Workbench;
let server: Registry;
beforeEach(async () => {
  bench = await openWorkbench();
  server = await startRegistry({ directory: join(bench.home, 'registry') });
});
afterEach(async () => {
  await server.close();
  await bench.close();
});

function open(repository: string): RegistryRepository {
  const connection = bench.connect({ useHttp: true });
  return createRegistryRepository({ connection, registry: new URL(server.url).host, repository });
}

const image = smallImage();

async function store(repository: RegistryRepository, tag: string): Promise<Descriptor> {
  await repository.putBlob(image.manifest.config, () => streamOf(image.config));
  await repository.putBlob(image.manifest.layers[0] as Descriptor, () => streamOf(image.layer));
  return repository.putManifest(tag, image.bytes, mediaTypes.ociManifest);
}

describe('oci/registry-client with the embedded registry', () => {
  it('pushes, lists, pulls, and removes a tag without its manifest', async () => {
    const repository = open('ns/name');
    await store(repository, 'v1');
    await repository.putManifest('v2', image.bytes, mediaTypes.ociManifest);
    expect(await repository.listTags()).toEqual(['v1', 'v2']);
    expect(await repository.getManifest('v1')).toEqual({ descriptor: image.descriptor, bytes: image.bytes });
    await repository.deleteManifest('v2');
    expect(await repository.listTags()).toEqual(['v1']);
    expect(await repository.headManifest(image.descriptor.digest)).toEqual(image.descriptor);
    await repository.deleteManifest(image.descriptor.digest);
    expect(await failureOf(repository.getManifest('v1'))).toMatchObject({ code: 'NOT_FOUND' });
  });

  it('pushes a large blob', async () => {
    const bytes = randomBytes(3_500_000);
    const blob = descriptorOf(bytes);
    await open('ns/name').putBlob(blob, () => streamOf(bytes));
    expect((await readAll(await open('ns/name').openBlob(blob))).equals(bytes)).toBe(true);
  });

  it('stores content under sha512', async () => {
    const bytes = randomBytes(1000);
    const digest = `sha512:${createHash('sha512').update(bytes).digest('hex')}`;
    const blob = { mediaType: mediaTypes.ociLayer, digest, size: bytes.length };
    await open('ns/name').putBlob(blob, () => streamOf(bytes));
    expect(await readAll(await open('ns/name').openBlob(blob))).toEqual(bytes);
  });

  it('mounts what another repository has', async () => {
    await store(open('ns/from'), 'v1');
    const result = await copyImage(open('ns/from'), 'v1', open('ns/to'), 'v1');
    expect(result).toMatchObject({ blobs: { copied: 0, mounted: 2 }, bytes: 0 });
  });

  it('lists referrers by the API and needs no tag for them', async () => {
    const repository = open('ns/name');
    await store(repository, 'v1');
    const signature = bytesOf({
      ...image.manifest,
      artifactType: 'application/x-sig',
      subject: image.descriptor,
    });
    const stored = await repository.putManifest(
      descriptorOf(signature).digest,
      signature,
      mediaTypes.ociManifest,
    );
    expect(await repository.listReferrers(image.descriptor.digest)).toEqual([
      { ...stored, artifactType: 'application/x-sig' },
    ]);
    expect(await repository.listReferrers(image.descriptor.digest, { artifactType: 'x/y' })).toEqual([]);
    expect(await repository.listTags()).toEqual(['v1']);
    await repository.deleteManifest(stored.digest);
    expect(await repository.listReferrers(image.descriptor.digest)).toEqual([]);
  });

  it('takes an index of which only some images were copied', async () => {
    const [source, target] = [open('ns/name'), open('ns/sparse')];
    const other = smallImage({ architecture: 'arm64' });
    await store(source, 'amd64');
    await source.putBlob(other.manifest.config, () => streamOf(other.config));
    await source.putBlob(other.manifest.layers[0] as Descriptor, () => streamOf(other.layer));
    await source.putManifest('arm64', other.bytes, mediaTypes.ociManifest);
    const platforms = ['amd64', 'arm64'].map((architecture) => ({ os: 'linux', architecture }));
    const entries = [image, other].map(({ descriptor }, i) => ({
      ...descriptor,
      platform: platforms[i] as never,
    }));
    const index = indexOf(entries);
    await source.putManifest('v1', index.bytes, mediaTypes.ociIndex);
    const result = await copyImage(source, 'v1', target, 'v1', { platforms: platforms.slice(0, 1) });
    expect(result).toMatchObject({ descriptor: index.descriptor, manifests: 2 });
  });
});
