import { chmod, mkdir, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type BlobCache, openBlobCache } from '../../../../src/oci/registry/blob-cache.js';
import {
  createRegistryRepository,
  type RegistryRepository,
} from '../../../../src/oci/registry/registry-client.js';
import type { Descriptor } from '../../../../src/oci/image/types.js';
import { failureOf, openWorkbench, type Workbench } from '../../../support/connect.js';
import { type FaultRegistry, startFaultRegistry } from '../../../support/fault-registry.js';
import { foreignName } from '../../../support/dead-process.js';
import { descriptorOf, readAll, serveImage, smallImage } from '../../../support/images.js';

const now = Date.UTC(2026, 0, 1);
const small = Buffer.from('a small blob');
const big = randomBytes(2_500_000);

let server: FaultRegistry;
let bench: Workbench;
let directory: string;
beforeEach(async () => {
  server = await startFaultRegistry();
  bench = await openWorkbench();
  directory = join(bench.home, 'cache');
});
afterEach(async () => {
  await bench.close();
  await server.close();
});

const logger = {
  log: (level: string, message: string) => void bench.logged.push(`${level}: ${message}`),
  progress: () => undefined,
};
const openCache = (): Promise<BlobCache> => openBlobCache({ directory, now, logger });

function repositoryWith(cache: BlobCache): RegistryRepository {
  const connection = bench.connect({ useHttp: true });
  return createRegistryRepository({ connection, registry: server.host, repository: 'ns/name', cache });
}

function entryOf({ digest }: Descriptor): string {
  const hex = digest.slice('sha256:'.length);
  return join(directory, 'blobs', 'sha256', hex.slice(0, 2), hex);
}

const leftovers = (): Promise<string[]> => readdir(join(directory, 'tmp'));

describe('oci/blob-cache', () => {
  it.each([
    ['small', small],
    ['large', big],
    ['empty', Buffer.alloc(0)],
  ])('fetches a %s blob once, for this process and the next', async (_, content) => {
    const blob = descriptorOf(content);
    server.serveBlob('ns/name', content);
    for (let i = 0; i < 3; i++) {
      const repository = repositoryWith(await openCache());
      expect((await readAll(await repository.openBlob(blob))).equals(content)).toBe(true);
    }
    expect(server.requests.length).toBe(1);
    expect((await readFile(entryOf(blob))).equals(content)).toBe(true);
    expect(await leftovers()).toEqual([]);
  });

  it('keeps manifests by digest and looks tags up each time', async () => {
    const image = smallImage();
    serveImage(server, 'ns/name', 'v1', image);
    const repository = repositoryWith(await openCache());
    await repository.getManifest('v1');
    expect(await repository.getManifest(image.descriptor.digest)).toEqual({
      descriptor: image.descriptor,
      bytes: image.bytes,
    });
    expect(server.requests.length).toBe(1);
    await repository.getManifest('v1');
    expect(server.requests.length).toBe(2);
  });

  it.each([
    ['is damaged', (file: string, content: Buffer) => writeFile(file, Buffer.alloc(content.length))],
    ['is cut off', (file: string) => truncate(file, 5)],
    [
      'is no file',
      async (file: string) => {
        await rm(file);
        await mkdir(file);
      },
    ],
  ])('fetches again when an entry %s', async (_, damage) => {
    for (const content of [small, big]) {
      const blob = descriptorOf(content);
      server.serveBlob('ns/name', content);
      const repository = repositoryWith(await openCache());
      await readAll(await repository.openBlob(blob));
      await damage(entryOf(blob), content);
      expect((await readAll(await repository.openBlob(blob))).equals(content)).toBe(true);
    }
    expect(server.requests.length).toBe(4);
    expect(bench.logged.filter((line) => line.startsWith('warn:')).length).toBeGreaterThan(0);
  });

  it('keeps nothing of what was wrong or given up', async () => {
    const blob = descriptorOf(big);
    const repository = repositoryWith(await openCache());
    const path = `/v2/ns/name/blobs/${blob.digest}`;
    server.on({ path, times: 1, respond: { body: Buffer.alloc(big.length) } });
    expect(await failureOf(readAll(await repository.openBlob(blob)))).toMatchObject({ code: 'DIGEST' });
    server.serveBlob('ns/name', big);
    const stream = await repository.openBlob(blob);
    for await (const chunk of stream) if ((chunk as Buffer).length > 0) break;
    await expect.poll(leftovers).toEqual([]);
    await expect(stat(entryOf(blob))).rejects.toThrow('ENOENT');
    await readAll(await repository.openBlob(blob));
    await stat(entryOf(blob));
  });

  it('removes what was used longest ago beyond its limit, and keeps nothing that is larger', async () => {
    const contents = ['a', 'b', 'c'].map((letter) => Buffer.from(letter.repeat(400)));
    for (const content of [...contents, big]) server.serveBlob('ns/name', content);
    const [first, second, third] = contents.map((content) => descriptorOf(content)) as [
      Descriptor,
      Descriptor,
      Descriptor,
    ];
    const read = async (blob: Descriptor, at: number): Promise<void> => {
      const cache = await openBlobCache({ directory, now: at, maxBytes: 1000, logger });
      await readAll(await repositoryWith(cache).openBlob(blob));
    };
    const later = Date.now() + 60_000;
    await read(first, later);
    await read(second, later);
    await utimes(entryOf(second), new Date(now), new Date(now));
    await utimes(entryOf(first), new Date(now - 1000), new Date(now - 1000));
    await read(first, later);
    await read(third, later);
    await read(descriptorOf(big), later);
    await stat(entryOf(first));
    await stat(entryOf(third));
    for (const gone of [second, descriptorOf(big)])
      await expect(stat(entryOf(gone))).rejects.toThrow('ENOENT');
    expect(bench.logged.filter((line) => line.startsWith('warn:'))).toEqual([]);
  });

  it('is filled by many at a time', async () => {
    server.serveBlob('ns/name', big);
    const blob = descriptorOf(big);
    const repositories = await Promise.all([0, 1, 2, 3].map(async () => repositoryWith(await openCache())));
    const read = await Promise.all(
      [...repositories, ...repositories].map(async (repository) => readAll(await repository.openBlob(blob))),
    );
    expect(read.every((content) => content.equals(big))).toBe(true);
    expect((await readFile(entryOf(blob))).equals(big)).toBe(true);
    expect(await leftovers()).toEqual([]);
  });

  it('sweeps what killed processes left, and leaves alone what may still be written', async () => {
    await openCache();
    const [old, young] = [foreignName('aaaa'), foreignName('bbbb')].map((name) =>
      join(directory, 'tmp', name),
    ) as [string, string];
    await writeFile(old, 'x');
    await writeFile(young, 'x');
    await utimes(old, new Date(now - 7_200_000), new Date(now - 7_200_000));
    await utimes(young, new Date(now - 60_000), new Date(now - 60_000));
    await openCache();
    expect(await leftovers()).toEqual([basename(young)]);
  });

  it('disables a cache that is not writable, with one warning', async () => {
    server.serveBlob('ns/name', small);
    // A file in place of the directory fails for root too, unlike permissions.
    await writeFile(directory, '');
    const repository = repositoryWith(await openCache());
    for (let i = 0; i < 2; i++) {
      expect((await readAll(await repository.openBlob(descriptorOf(small)))).equals(small)).toBe(true);
    }
    const warnings = bench.logged.filter((line) => line.includes('caching disabled'));
    expect(warnings.length).toBe(1);
  });

  it.skipIf(process.getuid?.() === 0)('is read where it may not be written', async () => {
    server.serveBlob('ns/name', small);
    await readAll(await repositoryWith(await openCache()).openBlob(descriptorOf(small)));
    await chmod(join(directory, 'tmp'), 0o500);
    await readAll(await repositoryWith(await openCache()).openBlob(descriptorOf(small)));
    expect(server.requests.length).toBe(1);
    await chmod(join(directory, 'tmp'), 0o700);
  });

  it('cancels a stream that comes from the cache', async () => {
    server.serveBlob('ns/name', big);
    const repository = repositoryWith(await openCache());
    await readAll(await repository.openBlob(descriptorOf(big)));
    const controller = new AbortController();
    const stream = await repository.openBlob(descriptorOf(big), { signal: controller.signal });
    controller.abort();
    expect(await failureOf(readAll(stream))).toMatchObject({ code: 'CANCELLED' });
  });

  it('stays a whole repository', async () => {
    server.on({ path: /tags\/list/, respond: { body: '{"tags":["v1"]}' } });
    const repository = repositoryWith(await openCache());
    expect(repository.name).toBe(`${server.host}/ns/name`);
    expect(await repository.listTags()).toEqual(['v1']);
  });
});
