import { createReadStream } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type CancelOptions, onAbort } from '../../core/concurrency.js';
import { computeDigest, isDigest, parseDigest, verifyContent } from '../../core/digest.js';
import { CancelledError, LimitError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import { ContentRepository, type LocalRepository } from './layout-content.js';
import { getSubject } from '../image/platform.js';
import { readManifestFacts } from './layout-manifest.js';
import { LayoutStore, type OpenLayoutOptions, ioError, refNameAnnotation } from './layout-store.js';
import type { PutBlobOptions, WritableRepository } from '../registry/repository.js';
import { type Descriptor, maxManifestBytes } from '../image/types.js';

/** A layout directory as one repository; its tags are the names in its index, such as `v1`. */
export type LayoutRepository = WritableRepository & LocalRepository;

/**
 * Opens an OCI image layout directory; `create` creates a missing one. Throws OpmateError NOT_FOUND, INVALID,
 * UNSUPPORTED, LIMIT or IO.
 */
export async function openLayout(
  directory: string,
  options: OpenLayoutOptions = {},
): Promise<LayoutRepository> {
  return new DirectoryRepository(await LayoutStore.open(directory, options));
}

class DirectoryRepository extends ContentRepository implements LayoutRepository {
  readonly #store: LayoutStore;

  constructor(store: LayoutStore) {
    super({
      name: `oci:${store.directory}`,
      entries: () => store.entries(),
      blobSize: (digest) => store.blobSize(digest),
      openBlob: async (digest) => createReadStream(store.blobPath(digest), { highWaterMark: 256 * 1024 }),
    });
    this.#store = store;
  }

  async putBlob(
    descriptor: Descriptor,
    openContent: () => Promise<Readable> | Readable,
    options: PutBlobOptions = {},
  ): Promise<void> {
    throwIfCancelled(options.signal);
    if (await this.hasBlob(descriptor)) return;
    const { digest, size } = descriptor;
    const path = this.#store.stagingPath();
    let failure: unknown;
    try {
      const handle = await open(path, 'wx');
      try {
        const content = await openContent();
        const checked = verifyContent({ digest, size, subject: `${this.name}: ${digest}` });
        const write = async (chunks: AsyncIterable<Buffer>) => {
          let written = 0;
          // Appends all of a chunk; `write` may write a part.
          for await (const chunk of chunks) {
            await handle.writeFile(chunk).catch((error: unknown) => {
              // The pipeline would report the abort that follows.
              failure = error;
              throw error;
            });
            written += chunk.length;
            options.onSent?.(written);
          }
        };
        const unwatch = onAbort(options.signal, () => void checked.destroy(new CancelledError()));
        await pipeline(content, checked, write).finally(unwatch);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await this.#store.adoptBlob(path, digest);
    } catch (error) {
      await rm(path, { force: true });
      if (options.signal?.aborted) throw new CancelledError('cancelled', { cause: error });
      throw ioError(this.name, 'cannot be written', failure ?? error);
    }
  }

  /** All images of a layout share its blobs. */
  mountBlob(descriptor: Descriptor): Promise<boolean> {
    return this.hasBlob(descriptor);
  }

  async putManifest(
    reference: string,
    bytes: Buffer,
    mediaType: string,
    options: CancelOptions = {},
  ): Promise<Descriptor> {
    throwIfCancelled(options.signal);
    const subject = getSubject(this.name, reference);
    if (bytes.length > maxManifestBytes) {
      throw new LimitError(`manifest is larger than ${maxManifestBytes} bytes`, { subject });
    }
    const byDigest = isDigest(reference);
    const digest = computeDigest(bytes, byDigest ? parseDigest(reference).algorithm : 'sha256');
    if (byDigest && digest !== reference) {
      throw new OpmateError('DIGEST', `content has digest ${digest}`, { subject });
    }
    const facts = readManifestFacts(bytes, subject);
    const descriptor: Descriptor = { mediaType, digest, size: bytes.length };
    await this.#store.writeBlob(digest, bytes);
    const children = new Set(facts.manifests.map((child) => child.digest));
    await this.#store.update((entries) => {
      // An image listed by an index gets no entry: otherwise `oci:DIR` would have two images.
      const kept = entries.filter((entry) =>
        findTag(entry) === undefined
          ? entry.digest !== digest && !children.has(entry.digest)
          : findTag(entry) !== reference,
      );
      if (!byDigest) return [...kept, { ...descriptor, annotations: { [refNameAnnotation]: reference } }];
      return entries.some((entry) => entry.digest === digest) ? entries : [...kept, descriptor];
    });
    return descriptor;
  }

  async deleteManifest(reference: string, options: CancelOptions = {}): Promise<void> {
    throwIfCancelled(options.signal);
    const notFound = new OpmateError('NOT_FOUND', 'not found', { subject: getSubject(this.name, reference) });
    await this.#store.update((entries) => {
      const kept = entries.filter((entry) => findTag(entry) !== reference && entry.digest !== reference);
      if (kept.length === entries.length && !isDigest(reference)) throw notFound;
      return kept.length === entries.length ? entries : kept;
    });
    if (!isDigest(reference)) return;
    const entries = await this.#store.entries();
    const reached = new Set(entries.map((entry) => entry.digest));
    await this.walk(entries, options, (manifest) => reached.add(manifest.digest));
    if (reached.has(reference)) return;
    if ((await this.#store.blobSize(reference)) === undefined) throw notFound;
    await this.#store.removeBlob(reference);
  }
}

function findTag(entry: Descriptor): string | undefined {
  return entry.annotations?.[refNameAnnotation];
}
