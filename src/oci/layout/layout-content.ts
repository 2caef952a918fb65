import { type Readable, pipeline } from 'node:stream';
import { type CancelOptions, mapConcurrent, onAbort } from '../../core/concurrency.js';
import { computeDigest, isDigest, parseDigest, verifyContent } from '../../core/digest.js';
import {
  CancelledError,
  DigestMismatchError,
  LimitError,
  OpmateError,
  throwIfCancelled,
} from '../../core/errors.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { type ManifestFacts, isManifestType, readManifestFacts } from '../image/manifest.js';
import { refNameAnnotation } from './layout-store.js';
import { getSubject } from '../image/platform.js';
import { readLimited } from '../image/read-limited.js';
import type { ManifestContent, Repository } from '../registry/repository.js';
import { type Descriptor, maxManifestBytes } from '../image/types.js';

const damageHint = 'copy it again from the original: it is damaged';

/** Content by digest with a list of images: a layout directory or archive file. */
export interface ContentSource {
  /** Name in messages. */
  readonly name: string;
  /** Returns the name with the file of some content; default: the name. */
  placeName?(digest: string): string;
  /** Images, with their tag in the annotation `org.opencontainers.image.ref.name`. */
  entries(): Promise<readonly Descriptor[]>;
  /** Returns the size of a blob in bytes; undefined if missing. */
  blobSize(digest: string): Promise<number | undefined>;
  /** Opens an existing blob without verification. */
  openBlob(digest: string): Promise<Readable>;
  /** Finds the entry of a reference; default: by tag. */
  resolve?(reference: string, entries: readonly Descriptor[]): Descriptor | undefined;
}

/** A repository whose only image needs no tag. */
export interface LocalRepository extends Repository {
  /** Returns the tag or digest of the only image. Throws OpmateError NOT_FOUND, and USAGE for several images. */
  soleReference(options?: CancelOptions): Promise<string>;
}

/** Returns a read-only repository of any ContentSource; all content is verified. */
export function createContentRepository(source: ContentSource) {
  const { name, placeName = () => name } = source;

  async function getManifest(reference: string, options: CancelOptions = {}): Promise<ManifestContent> {
    throwIfCancelled(options.signal);
    const { digest, ...expected } = (await find(reference)) ?? (await fail(reference));
    const bytes = await readManifest(digest, options);
    if (bytes === undefined) {
      throw new OpmateError('NOT_FOUND', `manifest ${digest} not found`, {
        subject: getSubject(name, reference),
      });
    }
    const subject = getSubject(placeName(digest), digest);
    if (expected.size !== undefined && expected.size !== bytes.length) {
      throw new DigestMismatchError(`expected ${expected.size} bytes, got ${bytes.length}`, { subject });
    }
    const mediaType = expected.mediaType ?? readManifestFacts(bytes, subject).mediaType;
    return { descriptor: { mediaType, digest, size: bytes.length }, bytes };
  }

  /** Visits every manifest below `roots` once; missing ones are ignored. */
  async function walk(
    roots: readonly Descriptor[],
    options: CancelOptions,
    visit: (manifest: Descriptor, facts: ManifestFacts) => void,
  ): Promise<void> {
    const seen = new Set<string>();
    let level = roots.filter(isManifestType);
    while (level.length > 0) {
      const fresh = level.filter((item) => !seen.has(item.digest) && seen.add(item.digest));
      const read = await mapConcurrent(
        fresh,
        16,
        async ({ digest }) => {
          const bytes = await readManifest(digest, options);
          return bytes && readManifestFacts(bytes, getSubject(name, digest));
        },
        options,
      );
      for (const [i, facts] of read.entries()) if (facts !== undefined) visit(fresh[i] as Descriptor, facts);
      level = read.flatMap((facts) => facts?.manifests ?? []);
    }
  }

  async function find(reference: string): Promise<(Partial<Descriptor> & { digest: string }) | undefined> {
    const entries = await source.entries();
    const named = source.resolve?.(reference, entries) ?? findTag(reference, entries);
    if (named !== undefined) return named;
    if (!isDigest(reference)) return undefined;
    const listed = entries.find((entry) => entry.digest === reference);
    if (listed !== undefined) return listed;
    return (await source.blobSize(reference)) === undefined ? undefined : { digest: reference };
  }

  /** Refuses an ambiguous tag: Docker saves `a:latest` and `b:latest` both as `latest`. */
  function findTag(tag: string, entries: readonly Descriptor[]): Descriptor | undefined {
    const tagged = entries.filter((entry) => getTag(entry) === tag);
    const digests = new Set(tagged.map((entry) => entry.digest));
    if (digests.size > 1) {
      throw new OpmateError('INVALID', `ambiguous: ${digests.size} images`, {
        subject: getSubject(name, tag),
        hint: `select one by digest: ${[...digests].slice(0, 5).join(', ')}`,
      });
    }
    return tagged[0];
  }

  async function listTags(): Promise<string[]> {
    const tags = (await source.entries()).map(getTag);
    return sortedByBytes(new Set(tags.filter((tag) => tag !== undefined)));
  }

  async function fail(reference: string): Promise<never> {
    const tags = await listTags();
    throw new OpmateError('NOT_FOUND', 'not found', {
      subject: getSubject(name, reference),
      hint: tags.length === 0 ? undefined : `use one of ${shorten(tags)}`,
    });
  }

  async function readManifest(digest: string, options: CancelOptions): Promise<Buffer | undefined> {
    const size = await source.blobSize(digest);
    if (size === undefined) return undefined;
    const subject = getSubject(placeName(digest), digest);
    if (size > maxManifestBytes) {
      throw new LimitError(`manifest is larger than ${maxManifestBytes} bytes`, { subject });
    }
    throwIfCancelled(options.signal);
    const bytes = await readLimited(await source.openBlob(digest), maxManifestBytes, `${subject}: manifest`);
    const actual = computeDigest(bytes, parseDigest(digest).algorithm);
    if (actual !== digest)
      throw new DigestMismatchError(`content has digest ${actual}`, { subject, hint: damageHint });
    return bytes;
  }

  const repository: LocalRepository = {
    name,
    getManifest,
    listTags,
    async headManifest(reference, options) {
      const entry = await find(reference);
      if (entry === undefined || (await source.blobSize(entry.digest)) === undefined) return undefined;
      const { mediaType, digest, size } = entry;
      if (mediaType !== undefined && size !== undefined) return { mediaType, digest, size };
      return (await getManifest(reference, options)).descriptor;
    },
    async openBlob({ digest, size }, { signal } = {}) {
      throwIfCancelled(signal);
      parseDigest(digest);
      const subject = `${placeName(digest)}: blob ${digest}`;
      const sourceSize = await source.blobSize(digest);
      if (sourceSize === undefined) throw new OpmateError('NOT_FOUND', 'not found', { subject });
      if (sourceSize !== size)
        throw new DigestMismatchError(`expected ${size} bytes, got ${sourceSize}`, { subject });
      const verified = verifyContent({ digest, size, subject, hint: damageHint });
      const content = await source.openBlob(digest);
      const cancel = () => void verified.destroy(new CancelledError('cancelled', { cause: signal?.reason }));
      pipeline(content, verified, onAbort(signal, cancel));
      return verified;
    },
    async hasBlob({ digest, size }) {
      parseDigest(digest);
      return (await source.blobSize(digest)) === size;
    },
    async listReferrers(digest, options = {}) {
      parseDigest(digest);
      const descriptors: Descriptor[] = [];
      await walk(await source.entries(), options, (manifest, facts) => {
        if (facts.subject !== digest) return;
        if (options.artifactType !== undefined && facts.artifactType !== options.artifactType) return;
        descriptors.push(getReferrer(manifest, facts));
      });
      return descriptors.sort((a, b) => compareBytes(a.digest, b.digest));
    },
    async soleReference() {
      const entries = await source.entries();
      const [first] = entries;
      if (first === undefined) throw new OpmateError('NOT_FOUND', 'no images', { subject: name });
      const names = entries.map((entry) => getTag(entry) ?? entry.digest);
      if (new Set(entries.map((entry) => entry.digest)).size === 1) return names[0] as string;
      throw new OpmateError('USAGE', `has ${entries.length} images`, {
        subject: name,
        hint: `select one: ${shorten(names)}`,
      });
    },
  };
  return { ...repository, walk };
}

/** Returns the tag of an entry of index.json. */
export function getTag({ annotations }: Descriptor): string | undefined {
  return annotations?.[refNameAnnotation];
}

/** Returns the first names of a list for a hint. */
function shorten(names: readonly string[]): string {
  return `${names.slice(0, 10).join(', ')}${names.length > 10 ? ', …' : ''}`;
}

/** Returns the descriptor of a manifest in the referrers API. */
export function getReferrer(manifest: Descriptor, facts: ManifestFacts): Descriptor {
  const { mediaType, digest, size } = manifest;
  const { artifactType, annotations } = facts;
  return {
    mediaType,
    digest,
    size,
    ...(artifactType !== undefined && { artifactType }),
    ...(annotations !== undefined && { annotations }),
  };
}
