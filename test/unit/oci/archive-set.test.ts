import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { openOciArchive } from '../../../src/oci/archive-source.js';
import {
  type ArchivedBlob,
  type ArchivedImage,
  type WriteArchiveOptions,
  openArchiveSets,
  readArchiveIndex,
  writeArchiveSet,
} from '../../../src/oci/archive-set.js';
import { type Descriptor, mediaTypes } from '../../../src/oci/types.js';
import { bytesOf, descriptorOf, readAll } from '../../support/images.js';
import { directoryWith } from '../../support/temporary.js';

/** Images for an archive, and how often each blob has been fetched. */
class Content {
  readonly images: ArchivedImage[] = [];
  readonly blobs: ArchivedBlob[] = [];
  readonly fetched: string[] = [];

  add(content: string | Buffer, mediaType?: string): Descriptor {
    const descriptor = descriptorOf(content, mediaType);
    const open = (): Readable => {
      this.fetched.push(descriptor.digest);
      return Readable.from([Buffer.from(content)], { objectMode: false });
    };
    this.blobs.push({ descriptor, open });
    return descriptor;
  }

  image(repository: string, tag: string | undefined, ...layers: (string | Buffer)[]): Descriptor {
    const config = this.add(`{"os":"linux","of":"${repository}"}`, mediaTypes.ociConfig);
    const manifest = {
      schemaVersion: 2,
      mediaType: mediaTypes.ociManifest,
      config,
      layers: layers.map((layer) => this.add(layer)),
    };
    const root = this.add(bytesOf(manifest), mediaTypes.ociManifest);
    this.images.push({ repository, tag, root });
    return root;
  }

  write(directory: string, options: Partial<WriteArchiveOptions> = {}) {
    return writeArchiveSet(directory, this.images, this.blobs, { partBytes: 1e9, lock: 'lock', ...options });
  }
}

function layer(size: number, seed: string): Buffer {
  return Buffer.alloc(size, createHash('sha512').update(seed).digest());
}

/** Two images that share a layer, and a third one without tag. */
function someContent(): Content {
  const content = new Content();
  content.image('ns/one', 'v1', layer(3000, 'a'), layer(70_000, 'shared'));
  content.image('ns/two', 'v1', layer(512, 'b'), layer(70_000, 'shared'), '');
  content.image('ns/two', undefined, layer(1_500_000, 'c'));
  return content;
}

async function filesOf(directory: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const name of (await readdir(directory)).sort()) {
    files[name] = createHash('sha256')
      .update(await readFile(path.join(directory, name)))
      .digest('hex');
  }
  return files;
}

describe('oci/archive-set', () => {
  it('writes one tar that is an archive of a layout, and an index of it', async () => {
    const directory = await directoryWith();
    const content = someContent();
    const { index, fetchedBytes, keptBytes } = await content.write(directory);
    expect(await readdir(directory)).toEqual(['mirror_000001.tar', 'mirror_archive.json']);
    expect(await readArchiveIndex(directory)).toEqual(index);
    expect(await readArchiveIndex(path.join(directory, 'mirror_archive.json'))).toEqual(index);
    expect(keptBytes).toBe(0);
    const sizes = [...index.blobs.values()].map(({ size }) => size);
    expect(fetchedBytes).toBe(sizes.reduce((sum, size) => sum + size, 0));
    expect(content.fetched).toHaveLength(index.blobs.size);

    const file = path.join(directory, 'mirror_000001.tar');
    const bytes = await readFile(file);
    expect(index.parts).toEqual([
      {
        file: 'mirror_000001.tar',
        size: bytes.length,
        sha256: createHash('sha256').update(bytes).digest('hex'),
      },
    ]);
    for (const [digest, { size, offset }] of index.blobs) {
      expect(descriptorOf(bytes.subarray(offset, offset + size)).digest).toBe(digest);
    }
    const archive = await openOciArchive(file);
    expect(await archive.listTags()).toEqual(['ns/one:v1', 'ns/two:v1']);
    const { bytes: manifest } = await archive.getManifest('ns/one:v1');
    expect(descriptorOf(manifest).digest).toBe(content.images[0]?.root.digest);
    await archive.close();
    const listed = spawnSync('tar', ['-tf', file], { encoding: 'utf8' });
    expect(listed.stderr).toBe('');
    expect(listed.stdout.split('\n')).toHaveLength(index.blobs.size + 3);
  });

  it('makes the same bytes of the same content in whatever order it comes', async () => {
    const [one, two] = [await directoryWith(), await directoryWith()];
    const content = someContent();
    await content.write(one, { partBytes: 200_000 });
    content.images.reverse();
    content.blobs.reverse();
    await content.write(two, { partBytes: 200_000, concurrency: 1 });
    expect(await filesOf(two)).toEqual(await filesOf(one));
  });

  it('gives out repositories by name, and blobs wherever they are', async () => {
    const directory = await directoryWith();
    const content = someContent();
    await content.write(directory, { partBytes: 200_000 });
    const archive = await openArchiveSets([directory]);
    const two = archive.repository('ns/two');
    expect(await two.listTags()).toEqual(['v1']);
    const [, tagged, untagged] = content.images;
    expect(await two.headManifest('v1')).toEqual(tagged?.root);
    const { bytes } = await two.getManifest(untagged?.root.digest as string);
    const [blob] = (JSON.parse(bytes.toString()) as { layers: Descriptor[] }).layers;
    expect((await readAll(await two.openBlob(blob as Descriptor))).length).toBe(1_500_000);
    expect(await readAll(await two.openBlob(descriptorOf('')))).toHaveLength(0);
    await expect(two.getManifest('v2')).rejects.toThrow(/ns\/two: v2: manifest not found/);
    expect(await archive.repository('ns/none').listTags()).toEqual([]);
    expect(archive.missing().size).toBe(0);
    await archive.close();
  });
});
