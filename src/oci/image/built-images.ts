import { type Readable, pipeline } from 'node:stream';
import { type CancelOptions } from '../../core/concurrency.js';
import { verifyContent } from '../../core/digest.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { Image } from './image.js';
import { type BuiltImage, listNewBlobs } from './image-builder.js';
import { getSubject } from './platform.js';
import type { ManifestContent, Repository } from '../registry/repository.js';
import type { Descriptor } from './types.js';

/** Built images that are not stored yet, as a repository to copy from: new content, and the layers of their bases. */
export class BuiltImages implements Repository {
  readonly name: string;
  readonly #manifests = new Map<string, ManifestContent>();
  readonly #blobs = new Map<string, () => Readable>();
  readonly #bases = new Map<string, Repository>();

  /** `index` lists the images, if any. */
  constructor(name: string, images: readonly BuiltImage[], index?: ManifestContent) {
    this.name = name;
    if (index !== undefined) this.#manifests.set(index.descriptor.digest, index);
    for (const image of images) {
      const { descriptor, manifest, base } = image;
      this.#manifests.set(descriptor.digest, { descriptor, bytes: manifest });
      for (const layer of base?.manifest.layers ?? [])
        this.#bases.set(layer.digest, (base as Image).repository);
      for (const { descriptor, open } of listNewBlobs(image)) this.#blobs.set(descriptor.digest, open);
    }
  }

  async getManifest(reference: string, options: CancelOptions = {}): Promise<ManifestContent> {
    throwIfCancelled(options.signal);
    const manifest = this.#manifests.get(reference);
    if (manifest !== undefined) return manifest;
    throw new OpmateError('NOT_FOUND', 'not found', { subject: getSubject(this.name, reference) });
  }

  async headManifest(reference: string): Promise<Descriptor | undefined> {
    return this.#manifests.get(reference)?.descriptor;
  }

  async openBlob(descriptor: Descriptor, options: CancelOptions = {}): Promise<Readable> {
    throwIfCancelled(options.signal);
    const { digest, size } = descriptor;
    const subject = getSubject(this.name, digest);
    const open = this.#blobs.get(digest);
    if (open !== undefined) {
      const checked = verifyContent({ digest, size, subject });
      // A failure of the first stream destroys the second with its error.
      pipeline(open(), checked, () => undefined);
      return checked;
    }
    const base = this.#bases.get(digest);
    if (base !== undefined) return base.openBlob(descriptor, options);
    throw new OpmateError('NOT_FOUND', 'not found', { subject });
  }

  async hasBlob(descriptor: Descriptor, options: CancelOptions = {}): Promise<boolean> {
    if (this.#blobs.has(descriptor.digest)) return true;
    return (await this.#bases.get(descriptor.digest)?.hasBlob(descriptor, options)) ?? false;
  }

  /** Built images have no tags. */
  async listTags(): Promise<string[]> {
    return [];
  }

  /** Built images have no referrers. */
  async listReferrers(): Promise<Descriptor[]> {
    return [];
  }
}
