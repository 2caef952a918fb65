import { execFile, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDockerArchive, openOciArchive } from '../../src/oci/archive-set/archive-source.js';
import { type LayoutRepository, openLayout } from '../../src/oci/layout/layout.js';
import type { Repository } from '../../src/oci/registry/repository.js';
import { type Descriptor, type ImageManifest, mediaTypes } from '../../src/oci/image/types.js';
import { type Registry, startRegistry } from '../../src/serve/registry/registry.js';
import { rawTar } from '../support/tar.js';

const sha256 = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const readAll = async (stream: Readable) => Buffer.concat((await stream.toArray()) as Buffer[]);

/** Reads an image with all its blobs, which checks every digest. */
async function readImage(repository: Repository, reference: string): Promise<string> {
  const { bytes, descriptor } = await repository.getManifest(reference);
  const manifest = JSON.parse(bytes.toString()) as ImageManifest;
  for (const blob of [manifest.config, ...manifest.layers]) await readAll(await repository.openBlob(blob));
  return descriptor.digest;
}

describe.skipIf(spawnSync('skopeo', ['--version']).error)('skopeo', () => {
  let root: string;
  let source: LayoutRepository;
  let registry: Registry;
  let one: Descriptor;
  let multi: Descriptor;

  const skopeo = async (...args: string[]): Promise<string> => {
    const policy = join(root, 'policy.json');
    const run = promisify(execFile);
    return (await run('skopeo', ['--policy', policy, ...args], { cwd: root })).stdout;
  };
  const copy = (...args: string[]) =>
    skopeo('copy', '--quiet', '--src-tls-verify=false', '--dest-tls-verify=false', ...args);
  const inRegistry = (name: string) => `docker://127.0.0.1:${registry.port}/${name}`;

  async function pushImage(architecture: string): Promise<Buffer> {
    const tar = rawTar([{ name: 'manifests/csv.yaml', content: randomBytes(100_000).toString('hex') }]);
    const gzip = gzipSync(tar);
    const config = Buffer.from(
      JSON.stringify({
        architecture,
        os: 'linux',
        config: {},
        rootfs: { type: 'layers', diff_ids: [sha256(tar)] },
      }),
    );
    const describe = (mediaType: string, bytes: Buffer) => ({
      mediaType,
      digest: sha256(bytes),
      size: bytes.length,
    });
    const layer = describe(mediaTypes.ociLayerGzip, gzip);
    await source.putBlob(layer, () => Readable.from([gzip]));
    await source.putBlob(describe(mediaTypes.ociConfig, config), () => Readable.from([config]));
    const document = { config: describe(mediaTypes.ociConfig, config), layers: [layer] };
    return Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: mediaTypes.ociManifest, ...document }));
  }

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'opmate-skopeo-'));
    await writeFile(join(root, 'policy.json'), '{"default":[{"type":"insecureAcceptAnything"}]}');
    source = await openLayout(join(root, 'source'), { create: true });
    const amd64 = await pushImage('amd64');
    one = await source.putManifest('one', amd64, mediaTypes.ociManifest);
    const arm64 = await pushImage('arm64');
    const other = await source.putManifest(sha256(arm64), arm64, mediaTypes.ociManifest);
    const index = {
      schemaVersion: 2,
      mediaType: mediaTypes.ociIndex,
      manifests: [
        { ...one, platform: { os: 'linux', architecture: 'amd64' } },
        { ...other, platform: { os: 'linux', architecture: 'arm64' } },
      ],
    };
    multi = await source.putManifest('multi', Buffer.from(JSON.stringify(index)), mediaTypes.ociIndex);
    registry = await startRegistry({ directory: join(root, 'registry') });
  });
  afterAll(async () => {
    await registry?.close();
    await rm(root, { recursive: true, force: true });
  });

  it('copies images and indexes to the registry and back, unchanged', async () => {
    await copy('oci:source:one', inRegistry('ns/name:one'));
    await copy('--all', 'oci:source:multi', inRegistry('ns/name:multi'));
    await copy('--all', inRegistry('ns/name:multi'), inRegistry('other/name:multi'));
    await copy('--all', inRegistry('other/name:multi'), 'oci:back:multi');
    await copy(inRegistry('ns/name:one'), 'oci:back:one');
    const back = await openLayout(join(root, 'back'));
    expect(await back.headManifest('multi')).toEqual(multi);
    expect(await readImage(back, 'one')).toBe(one.digest);
    const tags = JSON.parse(await skopeo('list-tags', '--tls-verify=false', inRegistry('ns/name'))) as object;
    expect(tags).toMatchObject({ Tags: ['multi', 'one'] });
  });

  it('reads the directory of the registry as a layout', async () => {
    await copy('oci:source:one', inRegistry('direct/name:one'));
    await copy('oci:registry:direct/name:one', 'oci:direct:one');
    expect(await readImage(await openLayout(join(root, 'direct')), 'one')).toBe(one.digest);
  });

  it('serves its layout under the name of the directory', async () => {
    await copy('oci:source:one', 'oci:plain:v1');
    const plain = await startRegistry({ directory: join(root, 'plain') });
    try {
      await copy(`docker://127.0.0.1:${plain.port}/plain:v1`, 'oci:from-plain:v1');
      await copy('oci:source:one', 'oci:plain:v2');
      const tags = await skopeo('list-tags', '--tls-verify=false', `docker://127.0.0.1:${plain.port}/plain`);
      expect(JSON.parse(tags)).toMatchObject({ Tags: ['v1', 'v2'] });
    } finally {
      await plain.close();
    }
    expect(await readImage(await openLayout(join(root, 'from-plain')), 'v1')).toBe(one.digest);
  });

  it('deletes from the registry', async () => {
    await copy('oci:source:one', inRegistry('deleted/name:one'));
    await skopeo('delete', '--tls-verify=false', inRegistry('deleted/name:one'));
    await expect(skopeo('inspect', '--tls-verify=false', inRegistry('deleted/name:one'))).rejects.toThrow(
      /unknown/,
    );
  });

  it('converts to Docker media types while copying', async () => {
    await copy('--format', 'v2s2', 'oci:source:one', inRegistry('docker/name:one'));
    const inspected = await skopeo('inspect', '--raw', '--tls-verify=false', inRegistry('docker/name:one'));
    expect(JSON.parse(inspected)).toMatchObject({ mediaType: mediaTypes.dockerManifest });
  });

  it('writes readable archives', async () => {
    await copy('oci:source:one', 'oci-archive:one.tar:v1');
    const archive = await openOciArchive(join(root, 'one.tar'));
    expect(await readImage(archive, await archive.soleReference())).toBe(one.digest);
    await archive.close();
    await copy('oci:source:one', 'docker-archive:docker.tar:quay.io/ns/name:v1');
    const saved = await openDockerArchive(join(root, 'docker.tar'));
    expect(await saved.listTags()).toEqual(['quay.io/ns/name:v1']);
    await readImage(saved, 'quay.io/ns/name:v1');
    await saved.close();
  });
});
