import { createReadStream } from 'node:fs';
import { Readable, pipeline } from 'node:stream';
import { type CancelOptions } from '../../core/concurrency.js';
import { verifyContent } from '../../core/digest.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { BuiltImage } from './image-builder.js';
import { getSubject } from './platform.js';
import type { ManifestContent, Repository } from '../registry/repository.js';
import type { Descriptor } from './types.js';

/**
 * Images that were built and are nowhere yet, as a repository that they can be copied from: manifests, configurations
 * and new layers are handed out from where the builder left them, the layers of bases from theirs.
 */
export class BuiltImages implements Repository {
  readonly name: string;
  readonly #manifests = new Map<string, ManifestContent>();
  readonly #blobs = new Map<string, () => Readable>();
  readonly #bases = new Map<string, Repository>();

  /** `index` is the one that lists the images, if there is one. */
  constructor(name: string, images: readonly BuiltImage[], index?: ManifestContent) {
    this.name = name;
    if (index !== undefined) this.#manifests.set(index.descriptor.digest, index);
    for (const { descriptor, manifest, config, configDescriptor, layers, layerFiles, base } of images) {
      this.#manifests.set(descriptor.digest, { descriptor, bytes: manifest });
      for (const layer of base?.manifest.layers ?? []) {
        this.#bases.set(layer.digest, (base as NonNullable<typeof base>).repository);
      }
      const own = [{ descriptor: configDescriptor, bytes: config }, ...layers];
      for (const { descriptor, bytes } of own) {
        this.#blobs.set(descriptor.digest, () => Readable.from([bytes], { objectMode: false }));
      }
      for (const { descriptor, file } of layerFiles) {
        this.#blobs.set(descriptor.digest, () => createReadStream(file, { highWaterMark: 256 * 1024 }));
      }
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
      // Whoever reads the second stream gets the error of the first.
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

  /** They have no tags. */
  async listTags(): Promise<string[]> {
    return [];
  }

  /** Nothing refers to them. */
  async listReferrers(): Promise<Descriptor[]> {
    return [];
  }
}
