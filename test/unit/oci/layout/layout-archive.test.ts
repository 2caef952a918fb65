import { createHash, randomBytes } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type ArchiveRepository,
  openDockerArchive,
  openOciArchive,
} from '../../../../src/oci/archive-set/archive-source.js';
import { type Descriptor, type ImageManifest, mediaTypes } from '../../../../src/oci/image/types.js';
import { rawTar } from '../../../support/tar.js';

let root: string;
let file: string;
const opened: ArchiveRepository[] = [];

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'opmate-archive-'));
  file = join(root, 'image.tar');
});
afterEach(async () => {
  for (const archive of opened.splice(0)) await archive.close();
  await rm(root, { recursive: true, force: true });
});

type Content = Buffer | string | { link: string } | { symlink: string };

function tarOf(files: Record<string, Content>): Buffer {
  return rawTar(
    Object.entries(files).map(([name, content]) => {
      if (typeof content === 'string' || Buffer.isBuffer(content)) return { name, content };
      return 'link' in content
        ? { name, flag: '1', linkName: content.link }
        : { name, flag: '2', linkName: content.symlink };
    }),
  );
}

const sha256 = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const json = (value: unknown) => Buffer.from(JSON.stringify(value));
const blobName = (bytes: Buffer) => `blobs/${sha256(bytes).replace(':', '/')}`;
const descriptorOf = (mediaType: string, bytes: Buffer): Descriptor => ({
  mediaType,
  digest: sha256(bytes),
  size: bytes.length,
});
const readAll = async (stream: Readable) => Buffer.concat((await stream.toArray()) as Buffer[]);
const open = async (kind: typeof openOciArchive, files: Record<string, Content>) => {
  await writeFile(file, tarOf(files));
  const archive = await kind(file);
  opened.push(archive);
  return archive;
};

const layer = randomBytes(3000);
const config = json({
  architecture: 'amd64',
  os: 'linux',
  rootfs: { type: 'layers', diff_ids: [sha256(layer)] },
});
const manifest = json({
  schemaVersion: 2,
  mediaType: mediaTypes.ociManifest,
  config: descriptorOf(mediaTypes.ociConfig, config),
  layers: [descriptorOf(mediaTypes.ociLayer, layer)],
});
const named = (name: string) => ({
  ...descriptorOf(mediaTypes.ociManifest, manifest),
  annotations: { 'org.opencontainers.image.ref.name': name },
});
const layout = {
  'oci-layout': '{"imageLayoutVersion":"1.0.0"}',
  'index.json': json({ schemaVersion: 2, manifests: [named('v1')] }),
  [blobName(manifest)]: manifest,
  [blobName(config)]: config,
  [blobName(layer)]: layer,
};

describe('oci/archive-source: archives of a layout', () => {
  it('reads images and blobs', async () => {
    const archive = await open(openOciArchive, layout);
    expect(archive.name).toBe(`oci-archive:${file}`);
    expect(await archive.listTags()).toEqual(['v1']);
    expect(await archive.soleReference()).toBe('v1');
    expect((await archive.getManifest('v1')).bytes.equals(manifest)).toBe(true);
    const blobs = Array.from({ length: 20 }, async () =>
      readAll(await archive.openBlob(descriptorOf(mediaTypes.ociLayer, layer))),
    );
    expect((await Promise.all(blobs)).every((bytes) => bytes.equals(layer))).toBe(true);
    await expect(archive.openBlob(descriptorOf('a/b', Buffer.from('?')))).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });

  it('reads names that start with ./', async () => {
    const files = Object.fromEntries(Object.entries(layout).map(([name, content]) => [`./${name}`, content]));
    expect(await (await open(openOciArchive, files)).listTags()).toEqual(['v1']);
  });

  it('detects damaged content', async () => {
    const archive = await open(openOciArchive, {
      ...layout,
      [blobName(layer)]: randomBytes(layer.length),
      [blobName(manifest)]: 'x',
    });
    await expect(archive.getManifest('v1')).rejects.toMatchObject({ code: 'DIGEST' });
    const stream = await archive.openBlob(descriptorOf(mediaTypes.ociLayer, layer));
    await expect(readAll(stream)).rejects.toMatchObject({ code: 'DIGEST' });
  });

  it('unpacks a compressed archive to a nameless temporary file', async () => {
    await writeFile(file, gzipSync(tarOf(layout)));
    await expect(openOciArchive(file)).rejects.toMatchObject({
      code: 'UNSUPPORTED',
      hint: expect.stringContaining('unpack'),
    });
    const archive = await openOciArchive(file, { temporaryDirectory: root });
    expect(await archive.listTags()).toEqual(['v1']);
    expect(await readAll(await archive.openBlob(descriptorOf(mediaTypes.ociLayer, layer)))).toEqual(layer);
    await archive.close();
    expect(await readdir(root)).toEqual(['image.tar']);
    await writeFile(file, gzipSync(tarOf(layout)).subarray(0, 300));
    await expect(openOciArchive(file, { temporaryDirectory: root })).rejects.toMatchObject({
      code: 'SYNTAX',
    });
    expect(await readdir(root)).toEqual(['image.tar']);
  });

  it('reads many blobs concurrently with one signal without a warning', async () => {
    const archive = await open(openOciArchive, layout);
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on('warning', note);
    const { signal } = new AbortController();
    const descriptor = descriptorOf(mediaTypes.ociLayer, layer);
    const streams = await Promise.all(
      Array.from({ length: 20 }, () => archive.openBlob(descriptor, { signal })),
    );
    await Promise.all(streams.map(readAll));
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', note);
    expect(warnings).toEqual([]);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('describes the problem of a file or the temporary directory', async () => {
    const none = join(root, 'none');
    await expect(openOciArchive(none)).rejects.toMatchObject({
      message: `${none}: no such file or directory`,
    });
    await writeFile(file, gzipSync(tarOf(layout)));
    await expect(openOciArchive(file, { temporaryDirectory: none })).rejects.toMatchObject({
      message: `${none}: cannot create a temporary file: no such file or directory`,
    });
  });

  it.each([
    ['that is missing', 'NOT_FOUND', undefined],
    ['that is no tar', 'SYNTAX', Buffer.alloc(2048, 'x')],
    ['that is empty', 'INVALID', Buffer.alloc(0)],
  ])('refuses a file %s', async (_, code, bytes) => {
    if (bytes !== undefined) await writeFile(file, bytes);
    await expect(openOciArchive(file)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(file),
    });
  });

  it('names the prefix of the other kind of archive', async () => {
    const hint = expect.stringContaining(`docker-archive:${file}`) as string;
    await expect(open(openOciArchive, { 'manifest.json': '[]' })).rejects.toMatchObject({
      code: 'INVALID',
      hint,
    });
    const other = expect.stringContaining(`oci-archive:${file}`) as string;
    await expect(open(openDockerArchive, layout)).rejects.toMatchObject({ code: 'INVALID', hint: other });
  });
});

describe('oci/archive-source: archives of docker save', () => {
  const saved = (tags: string[] | null, layers = ['abc/layer.tar']) =>
    json([{ Config: 'c.json', RepoTags: tags, Layers: layers }]);
  const legacy = {
    'c.json': config,
    'abc/layer.tar': layer,
    'manifest.json': saved(['quay.io/ns/name:v1', 'alpine:3']),
  };

  it('creates a reproducible manifest of uncompressed layers', async () => {
    const archive = await open(openDockerArchive, legacy);
    expect(await archive.listTags()).toEqual(['alpine:3', 'quay.io/ns/name:v1']);
    const { bytes, descriptor } = await archive.getManifest('quay.io/ns/name:v1');
    expect(descriptor).toEqual(descriptorOf(mediaTypes.ociManifest, bytes));
    expect(bytes.equals(manifest)).toBe(true);
    expect(
      (await readAll(await archive.openBlob(descriptorOf(mediaTypes.ociLayer, layer)))).equals(layer),
    ).toBe(true);
    expect(
      (await readAll(await archive.openBlob(descriptorOf(mediaTypes.ociConfig, config)))).equals(config),
    ).toBe(true);
  });

  it.each(['quay.io/ns/name:v1', 'v1', 'alpine:3', 'docker.io/library/alpine:3'])(
    'finds %s',
    async (reference) => {
      expect(await (await open(openDockerArchive, legacy)).headManifest(reference)).toBeDefined();
    },
  );

  it.each(['name:v1', 'v2', 'quay.io/ns/name'])('does not find %s', async (reference) => {
    expect(await (await open(openDockerArchive, legacy)).headManifest(reference)).toBeUndefined();
  });

  it('follows links between layers, symbolic and hard', async () => {
    for (const link of [{ symlink: '../abc/layer.tar' }, { link: 'abc/layer.tar' }]) {
      const archive = await open(openDockerArchive, {
        ...legacy,
        'def/layer.tar': link,
        'manifest.json': saved(null, ['def/layer.tar']),
      });
      const { bytes } = await archive.getManifest(await archive.soleReference());
      expect(bytes.equals(manifest)).toBe(true);
    }
  });

  it('detects compressed layers', async () => {
    const gzip = gzipSync(layer);
    const archive = await open(openDockerArchive, { ...legacy, 'abc/layer.tar': gzip });
    const { layers } = JSON.parse((await archive.getManifest('v1')).bytes.toString()) as ImageManifest;
    expect(layers).toEqual([descriptorOf(mediaTypes.ociLayerGzip, gzip)]);
  });

  it('prefers the manifests of an included OCI layout', async () => {
    const real = json({ ...(JSON.parse(manifest.toString()) as object), annotations: { real: 'yes' } });
    const archive = await open(openDockerArchive, {
      'oci-layout': '{"imageLayoutVersion":"1.0.0"}',
      'index.json': json({ schemaVersion: 2, manifests: [descriptorOf(mediaTypes.ociManifest, real)] }),
      [blobName(real)]: real,
      [blobName(config)]: config,
      [blobName(layer)]: layer,
      'manifest.json': json([
        { Config: blobName(config), RepoTags: ['busybox:1'], Layers: [blobName(layer)] },
      ]),
    });
    expect((await archive.getManifest('busybox:1')).bytes.equals(real)).toBe(true);
    expect((await readAll(await archive.openBlob(descriptorOf('', layer)))).equals(layer)).toBe(true);
  });

  it('detects a layer that does not match its diff ID', async () => {
    const archive = await open(openDockerArchive, { ...legacy, 'abc/layer.tar': randomBytes(layer.length) });
    const stream = await archive.openBlob(descriptorOf(mediaTypes.ociLayer, layer));
    await expect(readAll(stream)).rejects.toMatchObject({ code: 'DIGEST' });
  });

  it.each<[string, Record<string, Content>]>([
    ['without its config', { 'manifest.json': saved([]) }],
    ['without a layer', { 'manifest.json': saved([]), 'c.json': config }],
    [
      'with an additional layer',
      { ...legacy, 'manifest.json': saved([], ['abc/layer.tar', 'abc/layer.tar']) },
    ],
    ['with a manifest.json that is an object', { 'manifest.json': '{"a":1}' }],
    ['with an invalid config', { ...legacy, 'c.json': '[' }],
    [
      'with a diff id that is no digest',
      { ...legacy, 'c.json': json({ rootfs: { diff_ids: ['sha256:../x'] } }) },
    ],
    ['from before manifest.json', { repositories: '{}' }],
  ])('refuses one %s', async (_, files) => {
    await expect(open(openDockerArchive, files)).rejects.toMatchObject({ code: 'INVALID' });
    expect(await readFile(file)).toBeDefined();
  });
});
