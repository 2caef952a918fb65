import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ProgressEvent } from '../../../../src/core/log.js';
import { copyImage } from '../../../../src/oci/image/copy.js';
import { openLayout, type LayoutRepository } from '../../../../src/oci/layout/layout.js';
import { parsePlatform } from '../../../../src/oci/image/platform.js';
import {
  createRegistryRepository,
  type RegistryRepository,
} from '../../../../src/oci/registry/registry-client.js';
import type { WritableRepository } from '../../../../src/oci/registry/repository.js';
import { type Descriptor, mediaTypes } from '../../../../src/oci/image/types.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import {
  type DockerRegistry,
  hasDockerRegistry,
  startDockerRegistry,
} from '../../../support/docker-registry.js';
import {
  bytesOf,
  descriptorOf,
  indexOf,
  readAll,
  type SmallImage,
  smallImage,
  streamOf,
} from '../../../support/images.js';

let bench: Workbench;
beforeEach(async () => {
  bench = await openWorkbench();
});
afterEach(() => bench.close());

let layouts = 0;
const layout = (): Promise<LayoutRepository> =>
  openLayout(join(bench.home, `layout${layouts++}`), { create: true });

async function store(
  repository: WritableRepository,
  image: SmallImage,
  reference?: string,
): Promise<Descriptor> {
  await repository.putBlob(image.manifest.config, () => streamOf(image.config));
  await repository.putBlob(image.manifest.layers[0] as Descriptor, () => streamOf(image.layer));
  return repository.putManifest(reference ?? image.descriptor.digest, image.bytes, mediaTypes.ociManifest);
}

const amd64 = smallImage({ architecture: 'amd64' });
const arm64 = smallImage({ architecture: 'arm64' });
const both = indexOf([
  { ...amd64.descriptor, platform: parsePlatform('linux/amd64') },
  { ...arm64.descriptor, platform: parsePlatform('linux/arm64') },
]);

async function storeIndex(repository: WritableRepository, tag: string): Promise<void> {
  await store(repository, amd64);
  await store(repository, arm64);
  await repository.putManifest(tag, both.bytes, mediaTypes.ociIndex);
}

function signatureOf(subject: Descriptor): SmallImage {
  const image = smallImage({ text: `signature of ${subject.digest}` });
  const manifest = { ...image.manifest, artifactType: 'application/x-sig', subject };
  const bytes = bytesOf(manifest);
  return { ...image, manifest, bytes, descriptor: descriptorOf(bytes, mediaTypes.ociManifest) };
}

describe('oci/copy', () => {
  it('copies an index with all below it, and then only what is missing', async () => {
    const [source, target] = [await layout(), await layout()];
    await storeIndex(source, 'v1');
    const result = await copyImage(source, 'v1', target, 'v2');
    const bytes = [amd64, arm64].reduce((sum, image) => sum + image.layer.length + image.config.length, 0);
    expect(result).toEqual({
      descriptor: both.descriptor,
      manifests: 3,
      blobs: { copied: 4, mounted: 0, present: 0, skipped: 0 },
      bytes,
    });
    expect((await target.getManifest('v2')).bytes).toEqual(both.bytes);
    expect(await target.listTags()).toEqual(['v2']);
    for (const { manifest, layer } of [amd64, arm64]) {
      expect(await readAll(await target.openBlob(manifest.layers[0] as Descriptor))).toEqual(layer);
    }
    expect(await copyImage(source, 'v1', target, 'v3')).toMatchObject({ blobs: { copied: 0 }, bytes: 0 });
  });

  it('copies some platforms of an index and keeps its bytes', async () => {
    const [source, target] = [await layout(), await layout()];
    await storeIndex(source, 'v1');
    const platforms = [parsePlatform('linux/arm64')];
    const result = await copyImage(source, 'v1', target, 'v1', { platforms });
    expect(result.manifests).toBe(2);
    expect(result.descriptor).toEqual(both.descriptor);
    expect(await target.headManifest(arm64.descriptor.digest)).toBeDefined();
    expect(await target.headManifest(amd64.descriptor.digest)).toBeUndefined();
    const other = { platforms: [parsePlatform('linux/s390x')] };
    const failure = await failureOf(copyImage(source, 'v1', target, 'v9', other));
    expect(failure.message).toContain('v1: no image for linux/s390x, only linux/amd64, linux/arm64');
  });

  it('leaves no name behind when something is missing or cancelled', async () => {
    const [source, target] = [await layout(), await layout()];
    await storeIndex(source, 'v1');
    const hex = (arm64.manifest.layers[0] as Descriptor).digest.slice('sha256:'.length);
    await rm(join(source.name.slice('oci:'.length), 'blobs', 'sha256', hex));
    expect(await failureOf(copyImage(source, 'v1', target, 'v1'))).toMatchObject({ code: 'NOT_FOUND' });
    expect(await target.listTags()).toEqual([]);
    const failure = await failureOf(copyImage(source, 'v1', target, 'v1', { signal: AbortSignal.abort() }));
    expect(failure.code).toBe('CANCELLED');
    expect(await target.listTags()).toEqual([]);
  });

  it('leaves out a non-distributable layer that the source does not have', async () => {
    const [source, target] = [await layout(), await layout()];
    const image = smallImage();
    const foreign = {
      ...descriptorOf('windows', 'application/vnd.oci.image.layer.nondistributable.v1.tar+gzip'),
      urls: ['https://example.com/windows'],
    };
    await store(source, image);
    const manifest = bytesOf({ ...image.manifest, layers: [...image.manifest.layers, foreign] });
    await source.putManifest('v1', manifest, mediaTypes.ociManifest);
    expect((await copyImage(source, 'v1', target, 'v1')).blobs).toMatchObject({ copied: 2, skipped: 1 });
  });

  it('copies what refers to an image, and what refers to that', async () => {
    const [source, target] = [await layout(), await layout()];
    await store(source, amd64, 'v1');
    const signature = signatureOf(amd64.descriptor);
    const second = signatureOf(signature.descriptor);
    await store(source, signature);
    await store(source, second);
    expect((await copyImage(source, 'v1', target, 'v1')).manifests).toBe(1);
    expect((await copyImage(source, 'v1', target, 'v1', { referrers: true })).manifests).toBe(3);
    expect((await target.listReferrers(amd64.descriptor.digest)).map(({ digest }) => digest)).toEqual([
      signature.descriptor.digest,
    ]);
    expect(await target.headManifest(second.descriptor.digest)).toBeDefined();
  });

  it('copies an index that lists a manifest twice', async () => {
    const [source, target] = [await layout(), await layout()];
    await store(source, amd64);
    const inner = indexOf([amd64.descriptor, amd64.descriptor]);
    await source.putManifest(inner.descriptor.digest, inner.bytes, mediaTypes.ociIndex);
    const outer = indexOf([amd64.descriptor, inner.descriptor, amd64.descriptor]);
    await source.putManifest('v1', outer.bytes, mediaTypes.ociIndex);
    const result = await copyImage(source, 'v1', target, 'v1');
    expect(result).toMatchObject({ descriptor: outer.descriptor, manifests: 3, blobs: { copied: 2 } });
  });

  it('tells how far it is', async () => {
    const [source, target] = [await layout(), await layout()];
    await storeIndex(source, 'v1');
    const events: ProgressEvent[] = [];
    const logger = { log: () => undefined, progress: (event: ProgressEvent) => void events.push(event) };
    const { bytes } = await copyImage(source, 'v1', target, 'v1', { logger });
    expect(events[0]).toEqual({ task: `copy ${source.name}:v1 to ${target.name}:v1`, state: 'start' });
    expect(events.at(-2)).toMatchObject({ state: 'update', current: bytes, total: bytes });
    expect(events.at(-1)).toMatchObject({ state: 'done' });
  });
});

describe.skipIf(!hasDockerRegistry)('oci/copy and oci/registry-client with docker-registry', () => {
  let server: DockerRegistry;
  beforeAll(async () => {
    server = await startDockerRegistry();
  });
  afterAll(() => server.close());

  function open(repository: string): RegistryRepository {
    const connection = bench.connect({ useHttp: true });
    return createRegistryRepository({ connection, registry: server.host, repository });
  }

  it('pushes, lists, pulls and deletes', async () => {
    const repository = open('ns/plain');
    expect(await repository.headManifest('v1')).toBeUndefined();
    expect(await failureOf(repository.listTags())).toMatchObject({ code: 'NOT_FOUND' });
    await store(repository, amd64, 'v2');
    await store(repository, amd64, 'v1');
    expect(await repository.listTags()).toEqual(['v1', 'v2']);
    expect(await repository.headManifest('v1')).toEqual(amd64.descriptor);
    expect(await repository.getManifest('v1')).toEqual({ descriptor: amd64.descriptor, bytes: amd64.bytes });
    const layer = amd64.manifest.layers[0] as Descriptor;
    expect(await readAll(await repository.openBlob(layer))).toEqual(amd64.layer);
    await repository.deleteManifest(amd64.descriptor.digest);
    expect(await repository.headManifest('v1')).toBeUndefined();
    expect(await failureOf(repository.getManifest('v1'))).toMatchObject({
      code: 'NOT_FOUND',
      registryCodes: ['MANIFEST_UNKNOWN'],
    });
  });

  it('pushes a large blob', async () => {
    const repository = open('ns/large');
    const bytes = randomBytes(3_500_000);
    const blob = descriptorOf(bytes);
    await repository.putBlob(blob, () => streamOf(bytes));
    expect((await readAll(await repository.openBlob(blob))).equals(bytes)).toBe(true);
  });

  it('refuses a blob with another digest and leaves nothing there', async () => {
    const repository = open('ns/wrong');
    const blob = { ...descriptorOf('right'), size: 5 };
    const failure = await failureOf(repository.putBlob(blob, () => streamOf(Buffer.from('wrong'))));
    expect(failure).toMatchObject({ code: 'REGISTRY', registryCodes: ['DIGEST_INVALID'] });
    expect(await repository.hasBlob(blob)).toBe(false);
  });

  it('mounts blobs of a repository of the same registry', async () => {
    await storeIndex(open('ns/from'), 'v1');
    const result = await copyImage(open('ns/from'), 'v1', open('ns/to'), 'v1');
    expect(result).toMatchObject({ blobs: { copied: 0, mounted: 4 }, bytes: 0 });
    expect((await open('ns/to').getManifest('v1')).bytes).toEqual(both.bytes);
    expect(await open('ns/none').mountBlob(descriptorOf('nowhere'), 'ns/from')).toBe(false);
  });

  it('keeps referrers under their tag, all of them, and removes what is deleted', async () => {
    const [source, target] = [await layout(), open('ns/signed')];
    await store(source, amd64, 'v1');
    const signatures = [1, 2, 3, 4].map((i) => {
      const one = signatureOf(amd64.descriptor);
      const bytes = bytesOf({ ...one.manifest, annotations: { n: String(i) } });
      return { ...one, bytes, descriptor: descriptorOf(bytes, mediaTypes.ociManifest) };
    });
    for (const signature of signatures) await store(source, signature);
    await copyImage(source, 'v1', target, 'v1', { referrers: true });
    const digests = async () =>
      (await target.listReferrers(amd64.descriptor.digest)).map(({ digest }) => digest).sort();
    const expected = signatures.map(({ descriptor }) => descriptor.digest).sort();
    expect(await digests()).toEqual(expected);
    expect(await target.listTags()).toEqual([amd64.descriptor.digest.replace(':', '-'), 'v1']);
    await target.deleteManifest(expected[0] as string);
    expect(await digests()).toEqual(expected.slice(1));
  });

  it.skipIf(spawnSync('skopeo', ['--version']).status !== 0)('agrees with skopeo, both ways', async () => {
    await storeIndex(open('ns/ours'), 'v1');
    const directory = join(bench.home, 'skopeo');
    const skopeo = (...args: string[]): void => {
      const options = [
        'copy',
        '--insecure-policy',
        '--all',
        '--src-tls-verify=false',
        '--dest-tls-verify=false',
      ];
      const { status, stderr } = spawnSync('skopeo', [...options, ...args]);
      expect(String(stderr)).toBe('');
      expect(status).toBe(0);
    };
    skopeo(`docker://${server.host}/ns/ours:v1`, `oci:${directory}:v1`);
    const theirs = await openLayout(directory);
    expect((await theirs.getManifest('v1')).bytes).toEqual(both.bytes);
    skopeo(`oci:${directory}:v1`, `docker://${server.host}/ns/theirs:v1`);
    const target = await layout();
    const result = await copyImage(open('ns/theirs'), 'v1', target, 'v1');
    expect(result).toMatchObject({ descriptor: both.descriptor, blobs: { copied: 4 } });
    expect((await readdir(join(directory, 'blobs', 'sha256'))).sort()).toEqual(
      (await readdir(join(target.name.slice('oci:'.length), 'blobs', 'sha256'))).sort(),
    );
  });
});
