import { open } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Logger } from '../../../src/core/log.js';
import { type ArchiveIndex, readArchiveIndex } from '../../../src/oci/archive-set/archive-index.js';
import { type Descriptor, type ImageManifest, mediaTypes } from '../../../src/oci/image/types.js';
import { type Registry, startRegistry } from '../../../src/serve/registry/registry.js';
import { ArchiveContent, layerBytes, someContent, sumsOf } from '../../support/archive-content.js';
import { descriptorOf } from '../../support/images.js';
import { directoryWith } from '../../support/temporary.js';

async function serve(directory: string, archiveBases: string[] = [], logger?: Logger): Promise<Registry> {
  const registry = await startRegistry({ directory, archiveBases, ...(logger && { logger }) });
  onTestFinished(() => registry.close());
  return registry;
}

/** Asks a registry for something below `/v2/`. */
async function ask(registry: Registry, place: string, init: RequestInit = {}) {
  const answer = await fetch(`${registry.url}/v2/${place}`, init);
  const body = Buffer.from(await answer.arrayBuffer());
  return {
    status: answer.status,
    headers: answer.headers,
    body,
    json: () => JSON.parse(body.toString()) as unknown,
  };
}

describe('serve/registry, an archive set', () => {
  it('gives out all images by tag and digest, whichever part they are in', async () => {
    const directory = await directoryWith();
    const content = someContent();
    await content.write(directory, { partBytes: 100_000 });
    const before = await sumsOf(directory);
    const registry = await serve(directory);
    expect((await ask(registry, '_catalog')).json()).toEqual({ repositories: ['ns/one', 'ns/two'] });
    expect((await ask(registry, 'ns/two/tags/list')).json()).toEqual({ name: 'ns/two', tags: ['v1'] });
    for (const { repository, tag, root } of content.images) {
      for (const reference of [root.digest, ...(tag === undefined ? [] : [tag])]) {
        const answer = await ask(registry, `${repository}/manifests/${reference}`);
        expect([answer.status, answer.headers.get('content-type')]).toEqual([200, root.mediaType]);
        expect(descriptorOf(answer.body).digest).toBe(root.digest);
        const { config, layers } = answer.json() as ImageManifest;
        for (const blob of [config, ...layers]) {
          const got = await ask(registry, `${repository}/blobs/${blob.digest}`);
          expect([got.status, descriptorOf(got.body).digest]).toEqual([200, blob.digest]);
        }
      }
    }
    // Nothing is written beside it.
    expect(await sumsOf(directory)).toEqual(before);
  });

  it('keeps repositories apart', async () => {
    const directory = await directoryWith();
    const content = someContent();
    await content.write(directory);
    const registry = await serve(directory);
    const [one] = content.images;
    expect((await ask(registry, `ns/two/manifests/${one?.root.digest}`)).status).toBe(404);
    const own = descriptorOf(layerBytes(3000, 'a')).digest;
    expect((await ask(registry, `ns/one/blobs/${own}`)).status).toBe(200);
    expect((await ask(registry, `ns/two/blobs/${own}`)).status).toBe(404);
    expect((await ask(registry, 'ns/none/tags/list')).status).toBe(404);
  });

  it('gives out ranges of blobs', async () => {
    const directory = await directoryWith();
    await someContent().write(directory, { partBytes: 100_000 });
    const registry = await serve(directory);
    for (const [repository, bytes] of [
      ['ns/one', layerBytes(3000, 'a')],
      ['ns/two', layerBytes(1_500_000, 'c')],
    ] as const) {
      const place = `${repository}/blobs/${descriptorOf(bytes).digest}`;
      const answer = await ask(registry, place, { headers: { Range: 'bytes=1000-1999' } });
      expect([answer.status, answer.headers.get('content-range')]).toEqual([
        206,
        `bytes 1000-1999/${bytes.length}`,
      ]);
      expect(answer.body).toEqual(bytes.subarray(1000, 2000));
      const tail = await ask(registry, place, { headers: { Range: 'bytes=-10' } });
      expect(tail.body).toEqual(bytes.subarray(-10));
      const beyond = await ask(registry, place, { headers: { Range: `bytes=${bytes.length}-` } });
      expect(beyond.status).toBe(416);
      const head = await ask(registry, place, { method: 'HEAD' });
      expect([head.status, head.headers.get('content-length')]).toEqual([200, String(bytes.length)]);
    }
  });

  it('lists what refers to an image', async () => {
    const directory = await directoryWith();
    const content = someContent();
    const subject = content.images[0]?.root as Descriptor;
    const config = content.add('{}', mediaTypes.ociEmpty);
    const artifactType = 'application/signature';
    const signature = content.manifest('ns/one', undefined, { artifactType, config, layers: [], subject });
    await content.write(directory);
    const registry = await serve(directory);
    const answer = await ask(registry, `ns/one/referrers/${subject.digest}`);
    expect(answer.json()).toMatchObject({ manifests: [{ digest: signature.digest, artifactType }] });
  });

  it('takes no pushes, mounts or deletions', async () => {
    const directory = await directoryWith();
    const content = someContent();
    await content.write(directory);
    const registry = await serve(directory);
    const digest = content.images[0]?.root.digest as string;
    const blob = descriptorOf(layerBytes(3000, 'a')).digest;
    for (const [method, place] of [
      ['PUT', 'ns/one/manifests/v2'],
      ['DELETE', 'ns/one/manifests/v1'],
      ['DELETE', `ns/one/manifests/${digest}`],
      ['DELETE', `ns/one/blobs/${blob}`],
      ['POST', 'ns/one/blobs/uploads/'],
      ['POST', `ns/two/blobs/uploads/?mount=${blob}&from=ns/one`],
      ['PATCH', 'ns/one/blobs/uploads/5'],
      ['GET', 'ns/one/blobs/uploads/5'],
    ]) {
      const answer = await ask(registry, place as string, { method: method as string });
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
      expect(answer.json()).toEqual({
        errors: [
          {
            code: 'UNSUPPORTED',
            message: expect.stringMatching(/: an archive is served read-only$/) as string,
          },
        ],
      });
    }
    expect((await ask(registry, 'ns/one/manifests/v1')).status).toBe(200);
  });

  it('serves what is in the base where that is named, and warns where it is not', async () => {
    const [one, two] = [await directoryWith(), await directoryWith()];
    const { index: base } = await someContent().write(one);
    const content = someContent();
    content.image('ns/three', 'v1', layerBytes(70_000, 'shared'), 'new');
    await content.write(two, { base });
    const warnings: string[] = [];
    const logger: Logger = {
      log: (level, message) => void (level === 'warn' && warnings.push(message)),
      progress: () => undefined,
    };
    const alone = await serve(two, [], logger);
    expect(warnings).toEqual([
      `${two}: ${base.blobs.size} blobs unavailable without base archive ${base.id}`,
    ]);
    const shared = `ns/three/blobs/${descriptorOf(layerBytes(70_000, 'shared')).digest}`;
    expect((await ask(alone, 'ns/three/manifests/v1')).status).toBe(200);
    expect((await ask(alone, shared)).status).toBe(404);
    expect((await ask(alone, 'ns/one/manifests/v1')).status).toBe(404);

    const whole = await serve(two, [one], logger);
    expect(warnings).toHaveLength(1);
    expect((await ask(whole, shared)).body).toEqual(layerBytes(70_000, 'shared'));
    expect((await ask(whole, 'ns/one/manifests/v1')).status).toBe(200);
  });

  it('does not give out a damaged manifest', async () => {
    const directory = await directoryWith();
    const content = new ArchiveContent();
    const root = content.image('ns/one', 'v1', 'layer');
    await content.write(directory);
    const index: ArchiveIndex = await readArchiveIndex(directory);
    const handle = await open(path.join(directory, 'mirror_000001.tar'), 'r+');
    await handle.write('X', index.blobs.get(root.digest)?.offset ?? 0);
    await handle.close();
    const registry = await serve(directory);
    expect((await ask(registry, 'ns/one/manifests/v1')).status).toBe(404);
  });

  it('does not start where the archive is damaged, or a base is none', async () => {
    const [directory, layout] = [await directoryWith(), await directoryWith()];
    await someContent().write(directory);
    await expect(startRegistry({ directory, archiveBases: [layout] })).rejects.toThrow(
      /: not an archive: mirror_archive\.json not found/,
    );
    await expect(startRegistry({ directory: layout, archiveBases: [directory] })).rejects.toThrow(
      /: not an archive: mirror_archive\.json not found/,
    );
    const broken = await directoryWith({ 'mirror_archive.json': '{' });
    await expect(startRegistry({ directory: broken })).rejects.toThrow(/mirror_archive\.json: invalid JSON/);
  });
});
