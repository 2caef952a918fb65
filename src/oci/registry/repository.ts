import type { Readable } from 'node:stream';
import type { CancelOptions } from '../../core/concurrency.js';
import type { Descriptor } from '../image/types.js';

/** A manifest or index as its bytes, with the descriptor that they were checked against. */
export interface ManifestContent {
  descriptor: Descriptor;
  bytes: Buffer;
}

/**
 * One repository of manifests and blobs, wherever it is kept: in a registry, a layout directory, or an
 * archive file. Everything that it hands out has been checked against its digest, or is a stream that
 * fails at its end when the digest or size is wrong.
 */
export interface Repository {
  /** How messages name it, e.g. `quay.io/ns/name` or `oci:./layout`. */
  readonly name: string;
  /**
   * Reads a manifest or index by tag or digest. At most 4 MiB.
   * Throws OpmateError NOT_FOUND, DIGEST, LIMIT, AUTH, NETWORK or REGISTRY.
   */
  getManifest(reference: string, options?: CancelOptions): Promise<ManifestContent>;
  /** The descriptor of a manifest, or undefined if missing. Cheaper than reading it where possible. */
  headManifest(reference: string, options?: CancelOptions): Promise<Descriptor | undefined>;
  /** Opens a blob from its first byte. The stream errors when content and descriptor disagree. */
  openBlob(descriptor: Descriptor, options?: CancelOptions): Promise<Readable>;
  hasBlob(descriptor: Descriptor, options?: CancelOptions): Promise<boolean>;
  /** Tags in byte order. */
  listTags(options?: CancelOptions): Promise<string[]>;
  /**
   * All tags, where one request lists them: an empty set for a repository that is not there, and undefined for a list
   * of several pages, a refused one, and a repository that has mirrors. Missing where tags are cheap to ask for.
   */
  findTags?(options?: CancelOptions): Promise<ReadonlySet<string> | undefined>;
  /** Descriptors of the manifests whose `subject` is `digest`. */
  listReferrers(digest: string, options?: ReferrersOptions): Promise<Descriptor[]>;
}

export interface ReferrersOptions extends CancelOptions {
  artifactType?: string | undefined;
  /** All tags, where they are known: a list of referrers whose tag is not among them is not asked for. */
  tags?: ReadonlySet<string> | undefined;
}

export interface PutBlobOptions extends CancelOptions {
  /** The blob is known not to be there, so that it need not be asked for. */
  isAbsent?: boolean | undefined;
  /** Called with the bytes that have been sent so far; they begin anew with every attempt. */
  onSent?: ((bytes: number) => void) | undefined;
}

/** A repository that can be written to. */
export interface WritableRepository extends Repository {
  /** Stores a blob; does nothing when it is there. `open` may be called again after a failed attempt. */
  putBlob(
    descriptor: Descriptor,
    open: () => Promise<Readable> | Readable,
    options?: PutBlobOptions,
  ): Promise<void>;
  /**
   * Takes a blob over from another repository of the same place, named as that place names it
   * (`ns/name`). False when that is not possible there.
   */
  mountBlob(descriptor: Descriptor, fromRepository: string, options?: CancelOptions): Promise<boolean>;
  /** Stores manifest bytes under a tag or under their own digest; returns what is now there. */
  putManifest(
    reference: string,
    bytes: Buffer,
    mediaType: string,
    options?: CancelOptions,
  ): Promise<Descriptor>;
  /** Removes a manifest by digest, or only a tag by its name. */
  deleteManifest(reference: string, options?: CancelOptions): Promise<void>;
}
