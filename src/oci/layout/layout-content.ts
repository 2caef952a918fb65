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
import { type ManifestFacts, isManifestType, readManifestFacts } from './layout-manifest.js';
import { refNameAnnotation } from './layout-store.js';
import { readLimited } from '../image/read-limited.js';
import type { ManifestContent, Repository } from '../registry/repository.js';
import { type Descriptor, maxManifestBytes } from '../image/types.js';

/** Content by digest with a list of what it is for: a layout directory, or an archive file. */
export interface ContentSource {
  /** How messages name it. */
  readonly name: string;
  /** Images, with their tag in the annotation `org.opencontainers.image.ref.name`. */
  entries(): Promise<readonly Descriptor[]>;
  /** Bytes of a blob, or undefined if missing. */
  blobSize(digest: string): Promise<number | undefined>;
  /** Opens a blob that is there, unchecked. */
  openBlob(digest: string): Promise<Readable>;
  /** The entry that a reference other than a digest means; the default compares tags. */
  resolve?(reference: string, entries: readonly Descriptor[]): Descriptor | undefined;
}

/** A repository that a command may name without saying which image it means. */
export interface LocalRepository extends Repository {
  /**
   * The tag or digest of the only image. Throws OpmateError NOT_FOUND if missing, and USAGE with
   * the names when there are several.
   */
  soleReference(options?: CancelOptions): Promise<string>;
}

/** The reading half of a repository over any ContentSource; everything that it hands out is verified. */
export class ContentRepository implements LocalRepository {
  readonly name: string;
  readonly #source: ContentSource;

  constructor(source: ContentSource) {
    this.name = source.name;
    this.#source = source;
  }

  async getManifest(reference: string, options: CancelOptions = {}): Promise<ManifestContent> {
    throwIfCancelled(options.signal);
    const entry = await this.#find(reference);
    if (entry === undefined) throw await this.#unknown(reference);
    const bytes = await this.#readManifest(entry.digest, options);
    if (bytes === undefined) {
      throw new OpmateError('NOT_FOUND', `${reference}: manifest ${entry.digest} is listed but missing`, {
        subject: this.name,
      });
    }
    if (entry.size !== undefined && entry.size !== bytes.length) {
      throw new DigestMismatchError(
        `${entry.digest}: has ${bytes.length} bytes, its descriptor says ${entry.size}`,
        { subject: this.name },
      );
    }
    const mediaType = entry.mediaType ?? readManifestFacts(bytes, `${this.name}: ${entry.digest}`).mediaType;
    return { descriptor: { mediaType, digest: entry.digest, size: bytes.length }, bytes };
  }

  async headManifest(reference: string, options: CancelOptions = {}): Promise<Descriptor | undefined> {
    const entry = await this.#find(reference);
    if (entry === undefined || (await this.#source.blobSize(entry.digest)) === undefined) return undefined;
    if (entry.mediaType !== undefined && entry.size !== undefined) {
      return { mediaType: entry.mediaType, digest: entry.digest, size: entry.size };
    }
    return (await this.getManifest(reference, options)).descriptor;
  }

  async openBlob(descriptor: Descriptor, options: CancelOptions = {}): Promise<Readable> {
    throwIfCancelled(options.signal);
    const { digest, size } = descriptor;
    parseDigest(digest);
    const sourceSize = await this.#source.blobSize(digest);
    if (sourceSize === undefined)
      throw new OpmateError('NOT_FOUND', `${digest}: blob not found`, { subject: this.name });
    if (sourceSize !== size) {
      throw new DigestMismatchError(`${digest}: has ${sourceSize} bytes, its descriptor says ${size}`, {
        subject: this.name,
      });
    }
    return this.#verified(digest, size, options);
  }

  async hasBlob(descriptor: Descriptor): Promise<boolean> {
    parseDigest(descriptor.digest);
    return (await this.#source.blobSize(descriptor.digest)) === descriptor.size;
  }

  async listTags(): Promise<string[]> {
    const tags = (await this.#source.entries()).map((entry) => entry.annotations?.[refNameAnnotation]);
    return sortedByBytes(new Set(tags.filter((tag) => tag !== undefined)));
  }

  async listReferrers(
    digest: string,
    options: CancelOptions & { artifactType?: string } = {},
  ): Promise<Descriptor[]> {
    parseDigest(digest);
    const descriptors: Descriptor[] = [];
    await this.walk(await this.#source.entries(), options, (manifest, facts) => {
      if (facts.subject !== digest) return;
      if (options.artifactType !== undefined && facts.artifactType !== options.artifactType) return;
      descriptors.push(getReferrer(manifest, facts));
    });
    return descriptors.sort((a, b) => compareBytes(a.digest, b.digest));
  }

  async soleReference(): Promise<string> {
    const entries = await this.#source.entries();
    const [first] = entries;
    if (first === undefined) throw new OpmateError('NOT_FOUND', 'holds no image', { subject: this.name });
    const names = entries.map((entry) => entry.annotations?.[refNameAnnotation] ?? entry.digest);
    if (new Set(entries.map((entry) => entry.digest)).size > 1) {
      throw new OpmateError('USAGE', `holds ${entries.length} images`, {
        subject: this.name,
        hint: `select one: ${names.slice(0, 10).join(', ')}${names.length > 10 ? ', …' : ''}`,
      });
    }
    return names[0] as string;
  }

  /** Visits every manifest that can be reached from `roots` once; what is missing or none is passed over. */
  async walk(
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
        async (item) => {
          const bytes = await this.#readManifest(item.digest, options);
          return bytes && { item, facts: readManifestFacts(bytes, `${this.name}: ${item.digest}`) };
        },
        options,
      );
      level = [];
      for (const descriptor of read) {
        if (descriptor === undefined) continue;
        visit(descriptor.item, descriptor.facts);
        level.push(...descriptor.facts.manifests);
      }
    }
  }

  async #find(reference: string): Promise<{ digest: string; mediaType?: string; size?: number } | undefined> {
    const entries = await this.#source.entries();
    const named = this.#source.resolve
      ? this.#source.resolve(reference, entries)
      : this.#onlyOne(
          reference,
          entries.filter((entry) => entry.annotations?.[refNameAnnotation] === reference),
        );
    if (named !== undefined) return named;
    if (!isDigest(reference)) return undefined;
    const listed = entries.find((entry) => entry.digest === reference);
    if (listed !== undefined) return listed;
    return (await this.#source.blobSize(reference)) === undefined ? undefined : { digest: reference };
  }

  /** Docker saves `a:latest` and `b:latest` both as `latest`; taking either would be a guess. */
  #onlyOne(reference: string, entries: readonly Descriptor[]): Descriptor | undefined {
    const digests = new Set(entries.map((entry) => entry.digest));
    if (digests.size > 1) {
      throw new OpmateError('INVALID', `${reference}: names ${digests.size} different images`, {
        subject: this.name,
        hint: `select one by digest: ${[...digests].slice(0, 5).join(', ')}`,
      });
    }
    return entries[0];
  }

  async #unknown(reference: string): Promise<OpmateError> {
    const tags = await this.listTags();
    const hint =
      tags.length === 0
        ? undefined
        : `use one of ${tags.slice(0, 10).join(', ')}${tags.length > 10 ? ', …' : ''}`;
    return new OpmateError('NOT_FOUND', `${reference}: manifest not found`, { subject: this.name, hint });
  }

  async #readManifest(digest: string, options: CancelOptions): Promise<Buffer | undefined> {
    const size = await this.#source.blobSize(digest);
    if (size === undefined) return undefined;
    if (size > maxManifestBytes) {
      throw new LimitError(`${digest}: manifest is larger than ${maxManifestBytes} bytes`, {
        subject: this.name,
      });
    }
    throwIfCancelled(options.signal);
    const bytes = await readLimited(
      await this.#source.openBlob(digest),
      maxManifestBytes,
      `${this.name}: ${digest}: manifest`,
    );
    const actual = computeDigest(bytes, parseDigest(digest).algorithm);
    if (actual !== digest)
      throw new DigestMismatchError(`${digest}: content has digest ${actual}`, { subject: this.name });
    return bytes;
  }

  async #verified(digest: string, size: number, options: CancelOptions): Promise<Readable> {
    const { signal } = options;
    const checked = verifyContent({ digest, size, subject: `${this.name}: ${digest}` });
    const source = await this.#source.openBlob(digest);
    const cancel = () => void checked.destroy(new CancelledError('cancelled', { cause: signal?.reason }));
    pipeline(source, checked, onAbort(signal, cancel));
    return checked;
  }
}

/** The descriptor by which the referrers API lists a manifest. */
export function getReferrer(manifest: Descriptor, facts: ManifestFacts): Descriptor {
  return {
    mediaType: manifest.mediaType,
    digest: manifest.digest,
    size: manifest.size,
    ...(facts.artifactType === undefined ? {} : { artifactType: facts.artifactType }),
    ...(facts.annotations === undefined ? {} : { annotations: facts.annotations }),
  };
}
