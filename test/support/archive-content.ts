/** Images to be written into archive sets. */
import { createHash } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import {
  type ArchivedBlob,
  type ArchivedImage,
  type WriteArchiveOptions,
  type WrittenArchive,
  writeArchiveSet,
} from '../../src/oci/archive-set/archive-set-writer.js';
import { type Descriptor, mediaTypes } from '../../src/oci/image/types.js';
import { bytesOf, descriptorOf } from './images.js';

/** Images with all that they need, and which blobs have been fetched. */
export class ArchiveContent {
  readonly images: ArchivedImage[] = [];
  readonly blobs: ArchivedBlob[] = [];
  /** Digests of what has been opened. */
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
    const config = this.add(
      `{"os":"linux","architecture":"amd64","of":"${repository}"}`,
      mediaTypes.ociConfig,
    );
    return this.manifest(repository, tag, { config, layers: layers.map((layer) => this.add(layer)) });
  }

  manifest(repository: string, tag: string | undefined, fields: object): Descriptor {
    const document = { schemaVersion: 2, mediaType: mediaTypes.ociManifest, ...fields };
    const root = this.add(bytesOf(document), document.mediaType);
    this.images.push({ repository, tag, root });
    return root;
  }

  write(directory: string, options: Partial<WriteArchiveOptions> = {}): Promise<WrittenArchive> {
    return writeArchiveSet(directory, this.images, this.blobs, { partBytes: 1e9, lock: 'lock', ...options });
  }

  /** Has a blob fail when it is opened, or hand out something else. */
  spoil(digest: string, open: ArchivedBlob['open']): void {
    for (const blob of this.blobs) if (blob.descriptor.digest === digest) blob.open = open;
  }
}

/** Bytes that differ from those of another seed. */
export function layerBytes(size: number, seed: string): Buffer {
  return Buffer.alloc(size, createHash('sha512').update(seed).digest());
}

/** Two images that share a layer, and a third one without tag. */
export function someContent(): ArchiveContent {
  const content = new ArchiveContent();
  content.image('ns/one', 'v1', layerBytes(3000, 'a'), layerBytes(70_000, 'shared'));
  content.image('ns/two', 'v1', layerBytes(512, 'b'), layerBytes(70_000, 'shared'), '');
  content.image('ns/two', undefined, layerBytes(1_500_000, 'c'));
  return content;
}

/** The SHA-256 sums of the files of a directory. */
export async function sumsOf(directory: string): Promise<Record<string, string>> {
  const sums: Record<string, string> = {};
  for (const name of (await readdir(directory)).sort()) {
    sums[name] = createHash('sha256')
      .update(await readFile(path.join(directory, name)))
      .digest('hex');
  }
  return sums;
}
