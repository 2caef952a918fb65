import type { Readable } from 'node:stream';
import type { CancelOptions } from '../../core/concurrency.js';
import type { Descriptor } from '../image/types.js';

/** Bytes of a manifest or index with their verified descriptor. */
export interface ManifestContent {
  descriptor: Descriptor;
  bytes: Buffer;
}

/**
 * A repository of manifests and blobs: in a registry, a layout directory or an archive file. All content is verified;
 * streams fail at their end if the digest or size is wrong.
 */
export interface Repository {
  /** Name in messages: `quay.io/ns/name`, `oci:./layout`. */
  readonly name: string;
  /**
   * Reads a manifest or index of at most 4 MiB by tag or digest. Throws OpmateError NOT_FOUND, DIGEST, LIMIT, AUTH,
   * NETWORK or REGISTRY.
   */
  getManifest(reference: string, options?: CancelOptions): Promise<ManifestContent>;
  /** Returns the descriptor of a manifest, without reading it if possible; undefined if missing. */
  headManifest(reference: string, options?: CancelOptions): Promise<Descriptor | undefined>;
  /** Opens a blob at its start. The stream fails if content and descriptor differ. */
  openBlob(descriptor: Descriptor, options?: CancelOptions): Promise<Readable>;
  hasBlob(descriptor: Descriptor, options?: CancelOptions): Promise<boolean>;
  /** Returns the tags in byte order. */
  listTags(options?: CancelOptions): Promise<string[]>;
  /**
   * Returns all tags if a single request lists them, none for a missing repository. Undefined for a list of several pages,
   * a refused one, and a repository with mirrors. Not implemented if checking single tags is cheap.
   */
  findTags?(options?: CancelOptions): Promise<ReadonlySet<string> | undefined>;
  /** Returns the descriptors of the manifests whose `subject` is `digest`. */
  listReferrers(digest: string, options?: ReferrersOptions): Promise<Descriptor[]>;
}

export interface ReferrersOptions extends CancelOptions {
  artifactType?: string | undefined;
  /** All tags, if known: a list of referrers whose tag is missing is not requested. */
  tags?: ReadonlySet<string> | undefined;
}

export interface PutBlobOptions extends CancelOptions {
  /** The blob is known to be missing, so its existence is not checked. */
  isAbsent?: boolean | undefined;
  /** Called with the bytes sent so far, starting at 0 with every attempt. */
  onSent?: ((bytes: number) => void) | undefined;
}

/** A repository that can be written to. */
export interface WritableRepository extends Repository {
  /** Stores a blob unless it exists. `open` may be called again after a failed attempt. */
  putBlob(
    descriptor: Descriptor,
    open: () => Promise<Readable> | Readable,
    options?: PutBlobOptions,
  ): Promise<void>;
  /** Mounts a blob of another repository of the same registry, such as `ns/name`. Returns false if not possible. */
  mountBlob(descriptor: Descriptor, fromRepository: string, options?: CancelOptions): Promise<boolean>;
  /** Stores a manifest under a tag or its own digest. Returns its descriptor. */
  putManifest(
    reference: string,
    bytes: Buffer,
    mediaType: string,
    options?: CancelOptions,
  ): Promise<Descriptor>;
  /** Deletes a manifest by digest, or a tag. */
  deleteManifest(reference: string, options?: CancelOptions): Promise<void>;
}
