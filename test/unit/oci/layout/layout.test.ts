import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LayoutRepository, openLayout } from '../../../../src/oci/layout/layout.js';
import { collectGarbage } from '../../../../src/oci/layout/layout-garbage.js';
import { copyImage } from '../../../../src/oci/image/copy.js';
import { deadName } from '../../../support/dead-process.js';
import { type Descriptor, mediaTypes } from '../../../../src/oci/image/types.js';

let root: string;
let directory: string;
let layout: LayoutRepository;

const digestOf = (bytes: Buffer, algorithm = 'sha256') =>
  `${algorithm}:${createHash(algorithm).update(bytes).digest('hex')}`;
const descriptorOf = (bytes: Buffer, algorithm = 'sha256'): Descriptor => ({
  mediaType: mediaTypes.ociLayerGzip,
  digest: digestOf(bytes, algorithm),
  size: bytes.length,
});
const document = (value: object) => Buffer.from(JSON.stringify({ schemaVersion: 2, ...value }));
const configs = new Map<string, Buffer>();
const image = (extra: object = {}) => {
  const config = randomBytes(8);
  configs.set(digestOf(config), config);
  return document({
    mediaType: mediaTypes.ociManifest,
    config: { ...descriptorOf(config), mediaType: mediaTypes.ociConfig },
    layers: [],
    ...extra,
  });
};
const index = (manifests: Descriptor[], extra: object = {}) =>
  document({ mediaType: mediaTypes.ociIndex, manifests, ...extra });
/** Stores a manifest after its config. */
async function putImage(
  target: LayoutRepository,
  reference: string,
  bytes: Buffer,
  mediaType: string = mediaTypes.ociManifest,
): Promise<Descriptor> {
  for (const [, digest] of bytes.toString('latin1').matchAll(/"digest":"([^"]+)"/g)) {
    const config = configs.get(digest as string);
    if (config !== undefined) await target.putBlob(descriptorOf(config), () => Readable.from([config]));
  }
  return await target.putManifest(reference, bytes, mediaType);
}
const put = (reference: string, bytes: Buffer, mediaType?: string) =>
  putImage(layout, reference, bytes, mediaType);
const readAll = async (stream: Readable) => Buffer.concat((await stream.toArray()) as Buffer[]);
const filesOf = async () => (await readdir(directory, { recursive: true })).sort();

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'opmate-layout-'));
  directory = join(root, 'layout');
  layout = await openLayout(directory, { create: true });
});
afterEach(() => rm(root, { recursive: true, force: true }));

describe('oci/layout: opening', () => {
  it('creates an empty layout once', async () => {
    expect(await filesOf()).toEqual(['blobs', 'blobs/sha256', 'index.json', 'oci-layout']);
    expect(await readFile(join(directory, 'oci-layout'), 'utf8')).toBe('{"imageLayoutVersion":"1.0.0"}');
    await put('v1', image());
    expect(await (await openLayout(directory, { create: true })).listTags()).toEqual(['v1']);
  });

  it('creates a layout with the first write on request, so earlier failures leave nothing', async () => {
    const deep = join(root, 'a', 'b');
    const lazy = await openLayout(deep, { create: 'on-write' });
    expect(await lazy.listTags()).toEqual([]);
    const broken = lazy.putBlob(descriptorOf(randomBytes(9)), () => Readable.from([randomBytes(9)]));
    await expect(broken).rejects.toMatchObject({ code: 'DIGEST' });
    expect(await readdir(root)).toEqual(['layout']);
    await putImage(lazy, 'v1', image());
    expect(await (await openLayout(deep)).listTags()).toEqual(['v1']);
    expect(await (await openLayout(deep, { create: 'on-write' })).listTags()).toEqual(['v1']);
    await writeFile(join(root, 'file'), '');
    await expect(openLayout(root, { create: 'on-write' })).rejects.toMatchObject({ code: 'INVALID' });
  });

  it('loses nothing when several processes create a layout concurrently', async () => {
    const target = join(root, 'shared');
    const stores = await Promise.all(
      Array.from({ length: 8 }, () => openLayout(target, { create: 'on-write' })),
    );
    await Promise.all(stores.map((store, i) => putImage(store, `v${i}`, image({ i }))));
    const tags = stores.map((_, i) => `v${i}`);
    expect([...(await (await openLayout(target)).listTags())].sort()).toEqual(tags);
  });

  it('sweeps leftovers of a dead process at any stage of creation', async () => {
    const other = join(root, 'half');
    const [dead, elsewhere] = [await deadName(), '.opmate-00000000-7-7-0123456789abcdef'];
    await mkdir(other);
    for (const name of [dead, elsewhere]) await writeFile(join(other, name), 'x');
    await openLayout(other, { create: true });
    expect((await readdir(other)).sort()).toEqual([elsewhere, 'blobs', 'index.json', 'oci-layout']);
  });

  it.each([
    ['that is missing', 'NOT_FOUND', async () => undefined],
    ['without oci-layout', 'NOT_FOUND', () => mkdir(join(root, 'x'))],
    ['that is a file', 'NOT_FOUND', () => writeFile(join(root, 'x'), '')],
    ['of another version', 'UNSUPPORTED', () => make({ 'oci-layout': '{"imageLayoutVersion":"2.0.0"}' })],
    ['with a broken oci-layout', 'INVALID', () => make({ 'oci-layout': '{' })],
    ['without an index', 'NOT_FOUND', () => make({})],
    ['with a broken index', 'INVALID', () => make({ 'index.json': '[' })],
    [
      'with an index whose manifests are an object',
      'INVALID',
      () => make({ 'index.json': '{"manifests":{}}' }),
    ],
    [
      'with a digest that is a path',
      'INVALID',
      () => make({ 'index.json': '{"manifests":[{"mediaType":"a/b","digest":"sha256:../../x","size":1}]}' }),
    ],
  ])('refuses a directory %s', async (_, code, prepare) => {
    await prepare();
    await expect(openLayout(join(root, 'x'))).rejects.toMatchObject({
      code,
      message: expect.stringContaining('/x'),
    });
  });

  async function make(files: Record<string, string>): Promise<void> {
    await mkdir(join(root, 'x'));
    const all = { 'oci-layout': '{"imageLayoutVersion":"1.0.0"}', ...files };
    for (const [name, text] of Object.entries(all)) await writeFile(join(root, 'x', name), text);
  }

  it('fails immediately if no directory can be created', async () => {
    for (const [path, code] of [
      ['/proc/no/such/directory', process.platform === 'linux' ? 'NOT_FOUND' : expect.any(String)],
      [join(directory, 'index.json', 'below'), 'IO'],
    ]) {
      await expect(openLayout(path as string, { create: true })).rejects.toMatchObject({ code });
    }
  });

  it('does not create a layout in a directory with other files', async () => {
    await mkdir(join(root, 'x'));
    await writeFile(join(root, 'x', 'note.txt'), '');
    await expect(openLayout(join(root, 'x'), { create: true })).rejects.toMatchObject({ code: 'INVALID' });
    expect(await readdir(join(root, 'x'))).toEqual(['note.txt']);
  });
});

describe.each(['sha256', 'sha512'])('oci/layout: blobs by %s', (algorithm) => {
  it('stores and reads', async () => {
    for (const size of [0, 1, 700_000]) {
      const bytes = randomBytes(size);
      const descriptor = descriptorOf(bytes, algorithm);
      expect(await layout.hasBlob(descriptor)).toBe(false);
      const written: number[] = [];
      const onSent = (count: number): void => void written.push(count);
      const content = (): Readable => Readable.from([bytes.subarray(0, 9), bytes.subarray(9)]);
      await layout.putBlob(descriptor, content, { onSent });
      expect(written.at(-1) ?? 0).toBe(size);
      expect(await layout.hasBlob(descriptor)).toBe(true);
      expect((await readAll(await layout.openBlob(descriptor))).equals(bytes)).toBe(true);
    }
  });

  it('does not open the source of an existing blob', async () => {
    const bytes = randomBytes(10);
    await layout.putBlob(descriptorOf(bytes, algorithm), () => Readable.from([bytes]));
    await layout.putBlob(descriptorOf(bytes, algorithm), () => Promise.reject(new Error('opened')));
    expect(await layout.mountBlob(descriptorOf(bytes, algorithm), 'any')).toBe(true);
  });

  it.each([
    ['other bytes', (bytes: Buffer) => Buffer.from(bytes).fill(1, 0, 1)],
    ['too few bytes', (bytes: Buffer) => bytes.subarray(1)],
    ['too many bytes', (bytes: Buffer) => Buffer.concat([bytes, bytes])],
  ])('refuses %s and leaves nothing', async (_, change) => {
    const bytes = Buffer.alloc(100, 2);
    const before = await filesOf();
    const source = () => Readable.from([change(bytes)]);
    await expect(layout.putBlob(descriptorOf(bytes, algorithm), source)).rejects.toMatchObject({
      code: 'DIGEST',
    });
    expect(await filesOf()).toEqual(before);
  });

  it('detects a changed or truncated blob, and replaces one of another size', async () => {
    const bytes = randomBytes(5000);
    const descriptor = descriptorOf(bytes, algorithm);
    await layout.putBlob(descriptor, () => Readable.from([bytes]));
    const path = join(directory, 'blobs', descriptor.digest.replace(':', '/'));
    await writeFile(path, randomBytes(5000));
    await expect(readAll(await layout.openBlob(descriptor))).rejects.toMatchObject({ code: 'DIGEST' });
    await writeFile(path, bytes.subarray(0, 10));
    await expect(layout.openBlob(descriptor)).rejects.toMatchObject({ code: 'DIGEST' });
    expect(await layout.hasBlob(descriptor)).toBe(false);
    await layout.putBlob(descriptor, () => Readable.from([bytes]));
    expect((await readAll(await layout.openBlob(descriptor))).equals(bytes)).toBe(true);
  });
});

describe('oci/layout: blobs', () => {
  it('stops when cancelled and leaves nothing', async () => {
    const before = await filesOf();
    const controller = new AbortController();
    const bytes = randomBytes(100_000);
    const slow = () =>
      Readable.from(
        (async function* () {
          yield bytes.subarray(0, 1000);
          controller.abort();
          await new Promise((resolve) => setImmediate(resolve));
          yield bytes.subarray(1000);
        })(),
      );
    const { signal } = controller;
    await expect(layout.putBlob(descriptorOf(bytes), slow, { signal })).rejects.toMatchObject({
      code: 'CANCELLED',
    });
    expect(await filesOf()).toEqual(before);
    await expect(layout.openBlob(descriptorOf(bytes), { signal })).rejects.toMatchObject({
      code: 'CANCELLED',
    });
  });

  it('reports the error of the source and a missing blob', async () => {
    const fails = () =>
      new Readable({
        read: function () {
          this.destroy(new Error('source failed'));
        },
      }); // prettier-ignore
    await expect(layout.putBlob(descriptorOf(randomBytes(9)), fails)).rejects.toThrow(
      /source failed|cannot be written/,
    );
    await expect(layout.openBlob(descriptorOf(randomBytes(9)))).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('refuses invalid digests before they become a path', async () => {
    const descriptor = { mediaType: 'a/b', digest: 'sha256:../../index.json', size: 1 };
    await expect(layout.openBlob(descriptor)).rejects.toThrow();
    await expect(layout.hasBlob(descriptor)).rejects.toThrow();
    await expect(layout.putBlob(descriptor, () => Readable.from(['x']))).rejects.toThrow();
    await expect(layout.listReferrers(descriptor.digest)).rejects.toThrow();
    expect(await layout.headManifest(descriptor.digest)).toBeUndefined();
  });
});

describe('oci/layout: manifests', () => {
  it('refuses an ambiguous tag', async () => {
    await put('v1', image());
    await put('v2', image());
    const path = join(directory, 'index.json');
    await writeFile(path, (await readFile(path, 'utf8')).replace('"v2"', '"v1"'));
    const again = await openLayout(directory);
    await expect(again.getManifest('v1')).rejects.toMatchObject({
      code: 'INVALID',
      message: expect.stringContaining('v1: ambiguous: 2 images') as string,
      hint: expect.stringContaining('sha256:') as string,
    });
  });

  it('reads a manifest by tag and by digest of either algorithm', async () => {
    const bytes = image();
    const tagged = await put('v1', bytes);
    const other = await put(digestOf(bytes, 'sha512'), bytes);
    for (const [reference, descriptor] of [
      ['v1', tagged],
      [tagged.digest, tagged],
      [other.digest, other],
    ] as const) {
      expect(await layout.getManifest(reference)).toEqual({ descriptor, bytes });
      expect(await layout.headManifest(reference)).toEqual(descriptor);
    }
    await expect(layout.getManifest('v2')).rejects.toMatchObject({
      code: 'NOT_FOUND',
      hint: 'use one of v1',
    });
    expect(await layout.headManifest('v2')).toBeUndefined();
  });

  it('finds a manifest listed by an index only, and its type by its content', async () => {
    const child = image();
    const { digest } = await put(digestOf(child), child);
    await put(
      'multi',
      index([{ mediaType: mediaTypes.ociManifest, digest, size: child.length }]),
      mediaTypes.ociIndex,
    );
    expect((await layout.getManifest(digest)).descriptor).toEqual({
      mediaType: mediaTypes.ociManifest,
      digest,
      size: child.length,
    });
    expect(await layout.soleReference()).toBe('multi');
  });

  it('names the only image, or lists several', async () => {
    await expect(layout.soleReference()).rejects.toMatchObject({ code: 'NOT_FOUND' });
    const bytes = image();
    await put('a', bytes);
    await put('b', bytes);
    expect(await layout.soleReference()).toBe('a');
    const { digest } = await put(digestOf(image()), image()).catch(async () => {
      const other = image();
      return await put(digestOf(other), other);
    });
    await expect(layout.soleReference()).rejects.toMatchObject({
      code: 'USAGE',
      hint: `select one: a, b, ${digest}`,
    });
  });

  it('moves a tag and keeps other tags and unknown fields of the index', async () => {
    const path = join(directory, 'index.json');
    await writeFile(path, '{"schemaVersion":2,"annotations":{"a":"b"},"manifests":[]}');
    await put('v1', image());
    await put('v2', image());
    const moved = await put('v1', image());
    expect(await layout.listTags()).toEqual(['v1', 'v2']);
    expect(await layout.headManifest('v1')).toEqual(moved);
    const written = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
    expect(written.annotations).toEqual({ a: 'b' });
    expect(written.manifests).toHaveLength(2);
  });

  it('deletes a tag, or a manifest with its tags and its file', async () => {
    const bytes = image();
    const { digest } = await put('v1', bytes);
    await put('v2', bytes);
    await layout.deleteManifest('v1');
    expect(await layout.listTags()).toEqual(['v2']);
    await layout.deleteManifest(digest);
    expect(await layout.listTags()).toEqual([]);
    await expect(layout.getManifest(digest)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(layout.deleteManifest(digest)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(layout.deleteManifest('v1')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('lists referrers, also through an index', async () => {
    const subject = await put('v1', image());
    const typed = image({ subject, artifactType: 'application/x.sbom', annotations: { a: 'b' } });
    const plain = image({ subject });
    const child = await put(digestOf(plain), plain);
    await put(digestOf(typed), typed);
    await put('list', index([child]), mediaTypes.ociIndex);
    const found = await layout.listReferrers(subject.digest);
    expect(found.map((item) => item.digest).sort()).toEqual([digestOf(typed), digestOf(plain)].sort());
    expect(await layout.listReferrers(subject.digest, { artifactType: 'application/x.sbom' })).toEqual([
      {
        mediaType: mediaTypes.ociManifest,
        digest: digestOf(typed),
        size: typed.length,
        artifactType: 'application/x.sbom',
        annotations: { a: 'b' },
      },
    ]); // prettier-ignore
    expect(await layout.listReferrers(digestOf(Buffer.alloc(0)))).toEqual([]);
  });

  it('ignores entries that are no manifests', async () => {
    const subject = await put('v1', image());
    await put('text', document({}), 'application/x.other');
    const { digest } = await put('other', image({ subject }));
    await writeFile(join(directory, 'blobs', digestOf(document({})).replace(':', '/')), 'no JSON');
    expect(await layout.listReferrers(subject.digest)).toHaveLength(1);
    await layout.deleteManifest(digest);
    expect(await layout.listTags()).toEqual(['text', 'v1']);
  });

  it('refuses a damaged, oversized, misnamed or invalid manifest', async () => {
    const bytes = image();
    const { digest } = await put('v1', bytes);
    await expect(put(digest, image())).rejects.toMatchObject({ code: 'DIGEST' });
    await expect(put('big', Buffer.alloc(4 * 1024 * 1024 + 1))).rejects.toMatchObject({ code: 'LIMIT' });
    await expect(put('bad', Buffer.from('nothing'))).rejects.toMatchObject({ code: 'SYNTAX' });
    await expect(put('both', document({ layers: [], manifests: [] }))).rejects.toMatchObject({
      code: 'INVALID',
    });
    expect(await layout.listTags()).toEqual(['v1']);
    const path = join(directory, 'blobs', digest.replace(':', '/'));
    await writeFile(path, bytes.toString().replace('{', ' '));
    await expect(layout.getManifest('v1')).rejects.toMatchObject({ code: 'DIGEST' });
    await rm(path);
    await expect(layout.getManifest('v1')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});

describe('oci/layout: beside garbage collection', () => {
  const layer = randomBytes(100);
  const hourAgo = new Date(Date.now() - 2 * 3_600_000);
  const open = (): Promise<LayoutRepository> => openLayout(directory, { create: 'on-write' });
  const collect = async (minAgeMs?: number): Promise<string[]> => {
    const removed: string[] = [];
    for await (const { digest } of collectGarbage(directory, { minAgeMs })) removed.push(digest);
    return removed;
  };
  const agePath = (digest: string) => join(directory, 'blobs', digest.replace(':', '/'));

  it('keeps old unreferenced blobs that a writer finds or reuses', async () => {
    const bytes = image({ layers: [descriptorOf(layer)] });
    const child = image();
    const writer = await open();
    await writer.putBlob(descriptorOf(layer), () => Readable.from([layer]));
    await putImage(writer, digestOf(child), child);
    await writer.deleteManifest('missing').catch(() => undefined);
    await putImage(writer, 'v1', bytes);
    await writer.deleteManifest('v1');
    const all = [digestOf(bytes), digestOf(layer)];
    for (const digest of all) await utimes(agePath(digest), hourAgo, hourAgo);
    const other = await open();
    expect(await other.hasBlob(descriptorOf(layer))).toBe(true);
    expect(await other.headManifest(digestOf(bytes))).toMatchObject({ digest: digestOf(bytes) });
    expect(await collect()).toEqual([]);
    await other.putManifest('v2', bytes, mediaTypes.ociManifest);
    expect(await collect(0)).toEqual([]);
  });

  it('refuses a manifest whose blob has been removed, and an index whose image lacks one', async () => {
    const bytes = image({ layers: [descriptorOf(layer)] });
    const writer = await open();
    await expect(putImage(writer, 'v1', bytes)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining(`blob ${digestOf(layer)} not found`) as string,
    });
    await writer.putBlob(descriptorOf(layer), () => Readable.from([layer]));
    const descriptor = await putImage(writer, digestOf(bytes), bytes);
    await rm(agePath(digestOf(layer)));
    expect(await writer.headManifest(descriptor.digest)).toBeUndefined();
    await expect(put('all', index([descriptor]), mediaTypes.ociIndex)).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    expect(await writer.listTags()).toEqual([]);
  });

  it('copies again what is removed between the copy of a blob and of its manifest', async () => {
    const source = await openLayout(join(root, 'source'), { create: true });
    const bytes = image({ layers: [descriptorOf(layer)] });
    await source.putBlob(descriptorOf(layer), () => Readable.from([layer]));
    await putImage(source, 'v1', bytes);
    let removed: string[] = [];
    const target = await open();
    const interrupted: LayoutRepository = {
      ...target,
      putManifest: async (...args) => {
        if (removed.length === 0) removed = await collect(0);
        return await target.putManifest(...args);
      },
    };
    await copyImage(source, 'v1', interrupted, 'v1');
    expect(removed).toContain(digestOf(layer));
    expect(await readAll(await (await openLayout(directory)).openBlob(descriptorOf(layer)))).toEqual(layer);
    expect(await collect(0)).toEqual([]);
  });
});

describe('oci/layout: several writers', () => {
  it('loses no entry, and shows each writer the entries of the others', async () => {
    const others = await Promise.all(Array.from({ length: 4 }, () => openLayout(directory)));
    const tags = Array.from({ length: 60 }, (_, i) => `t${String(i).padStart(2, '0')}`);
    await Promise.all(tags.map((tag, i) => putImage(others[i % 4] as LayoutRepository, tag, image())));
    for (const other of [...others, layout]) expect(await other.listTags()).toEqual(tags);
    expect((await filesOf()).filter((name) => name.includes('lock') || name.includes('.upload'))).toEqual([]);
  });

  it('writes concurrent changes together', async () => {
    let writes = 0;
    let seen = '';
    const poll = setInterval(
      () =>
        void stat(join(directory, 'index.json')).then(
          ({ ino }) => {
            if (String(ino) !== seen) writes++;
            seen = String(ino);
          },
          () => undefined,
        ),
      1,
    ); // prettier-ignore
    await Promise.all(Array.from({ length: 100 }, (_, i) => put(`t${i}`, image())));
    clearInterval(poll);
    expect(writes).toBeLessThan(50);
    expect(await layout.listTags()).toHaveLength(100);
  });
});
