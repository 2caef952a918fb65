import { createReadStream } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { type CancelOptions, onAbort, withOpen } from '../../core/concurrency.js';
import { computeDigest, isDigest, parseDigest, verifyContent } from '../../core/digest.js';
import { CancelledError, LimitError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import { type LocalRepository, createContentRepository, getTag } from './layout-content.js';
import { getSubject } from '../image/platform.js';
import { type ManifestFacts, isNonDistributable, readManifestFacts } from '../image/manifest.js';
import {
  LayoutStore,
  MissingContentError,
  type OpenLayoutOptions,
  ioError,
  refNameAnnotation,
} from './layout-store.js';
import type { WritableRepository } from '../registry/repository.js';
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
  const store = await LayoutStore.open(directory, options);
  const content = createContentRepository({
    name: `oci:${directory}`,
    entries: () => store.entries(),
    blobSize: (digest) => store.blobSize(digest),
    openBlob: async (digest) => createReadStream(store.blobPath(digest), { highWaterMark: 256 * 1024 }),
  });
  const { name } = content;
  const isWriter = options.create !== undefined && options.create !== false;
  // Content that a writer finds may be unreferenced and old: garbage, unless it is claimed.
  const hasBlob = isWriter
    ? async ({ digest, size }: Descriptor) => (await store.claimBlob(digest)) === size
    : content.hasBlob;

  /** Claims the content of a manifest and of the images below it; returns a blob that is missing. */
  async function claimContent(facts: ManifestFacts, options: CancelOptions): Promise<Descriptor | undefined> {
    const blobs = [...facts.blobs];
    const images: Descriptor[] = [];
    await content.walk(facts.manifests, options, (image, { blobs: below }) => {
      images.push(image);
      blobs.push(...below);
    });
    for (const { digest } of images) await store.claimBlob(digest);
    for (const blob of blobs) if (!isNonDistributable(blob) && !(await hasBlob(blob))) return blob;
    return undefined;
  }

  return {
    ...content,
    hasBlob,
    /** For a writer, an image without all of its content is missing. */
    async headManifest(reference, options = {}) {
      const descriptor = await content.headManifest(reference, options);
      if (descriptor === undefined || !isWriter) return descriptor;
      const { bytes } = await content.getManifest(descriptor.digest, options);
      await store.claimBlob(descriptor.digest);
      const facts = readManifestFacts(bytes, getSubject(name, reference));
      return (await claimContent(facts, options)) === undefined ? descriptor : undefined;
    },
    // All images of a layout share its blobs.
    mountBlob: (descriptor) => hasBlob(descriptor),
    async putBlob(descriptor, openContent, options = {}) {
      throwIfCancelled(options.signal);
      if (await hasBlob(descriptor)) return;
      const { digest, size } = descriptor;
      const path = store.stagingPath();
      let failure: unknown;
      try {
        await withOpen(open(path, 'wx'), async (handle) => {
          const content = await openContent();
          const checked = verifyContent({ digest, size, subject: `${name}: ${digest}` });
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
        });
        await store.adoptBlob(path, digest);
      } catch (error) {
        await rm(path, { force: true });
        if (options.signal?.aborted) throw new CancelledError('cancelled', { cause: error });
        throw ioError(name, 'cannot be written', failure ?? error);
      }
    },
    async putManifest(reference, bytes, mediaType, options = {}) {
      throwIfCancelled(options.signal);
      const subject = getSubject(name, reference);
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
      await store.writeBlob(digest, bytes);
      const children = new Set(facts.manifests.map((child) => child.digest));
      await store.update((entries) => {
        // An image listed by an index gets no entry: otherwise `oci:DIR` would have two images.
        const kept = entries.filter((entry) =>
          getTag(entry) === undefined
            ? entry.digest !== digest && !children.has(entry.digest)
            : getTag(entry) !== reference,
        );
        if (!byDigest) return [...kept, { ...descriptor, annotations: { [refNameAnnotation]: reference } }];
        return entries.some((entry) => entry.digest === digest) ? entries : [...kept, descriptor];
      }, requireContent);
      return descriptor;

      /** Runs under the lock: garbage collection may have removed content meanwhile. */
      async function requireContent(): Promise<void> {
        const isStored = (await store.claimBlob(digest)) === bytes.length;
        const missing = isStored ? await claimContent(facts, options) : descriptor;
        if (missing !== undefined) throw new MissingContentError(missing.digest, subject);
      }
    },
    async deleteManifest(reference, options = {}) {
      throwIfCancelled(options.signal);
      const notFound = new OpmateError('NOT_FOUND', 'not found', { subject: getSubject(name, reference) });
      await store.update((entries) => {
        const kept = entries.filter((entry) => getTag(entry) !== reference && entry.digest !== reference);
        if (kept.length === entries.length && !isDigest(reference)) throw notFound;
        return kept.length === entries.length ? entries : kept;
      });
      if (!isDigest(reference)) return;
      const entries = await store.entries();
      const reached = new Set(entries.map((entry) => entry.digest));
      await content.walk(entries, options, (manifest) => reached.add(manifest.digest));
      if (reached.has(reference)) return;
      if ((await store.blobSize(reference)) === undefined) throw notFound;
      await store.removeBlob(reference);
    },
  };
}
