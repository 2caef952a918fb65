import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { KeyedLock } from '../../core/keyed-lock.js';
import type { Logger } from '../../core/log.js';
import { parseManifest, readManifestFacts } from '../image/manifest.js';
import { getSubject } from '../image/platform.js';
import { type Descriptor, type ImageIndex, mediaTypes, uniqueByDigest } from '../image/types.js';
import type { RegistryRequester } from './registry-request.js';
import type { ManifestContent } from './repository.js';

/** Maximum listed manifests read concurrently. */
const concurrency = 6;

/**
 * Returns the tag with the referrers of a digest, for registries without referrers API. (Source: distribution
 * specification, "Referrers Tag Schema".)
 */
export function referrersTag(digest: string): string {
  const [algorithm = '', hex = ''] = digest.split(':');
  return `${algorithm.slice(0, 32)}-${hex.slice(0, 64)}`;
}

/** Returns the digest whose referrers a tag lists; undefined for other tags. */
function findSubjectOfTag(tag: string): string | undefined {
  const hex = /^sha256-([0-9a-f]{64})$/.exec(tag)?.[1];
  return hex === undefined ? undefined : `sha256:${hex}`;
}

/** Reads a manifest by tag or digest; undefined if missing. */
type ReadManifest = (
  requester: RegistryRequester,
  reference: string,
  options: CancelOptions,
) => Promise<ManifestContent | undefined>;

interface TaggedContent {
  digest: string;
  /** The manifest if it is an index; its other fields are kept on writing. */
  index: ImageIndex | undefined;
  /** Entries that refer to the digest of the tag. */
  referrers: Descriptor[];
  /** The index lists referrers only, and so may be replaced. */
  isList: boolean;
}

/**
 * Lists of referrers in a repository of a registry without referrers API.
 *
 * Mirroring tags an image without tag as `sha256-HEX`, which is also the tag of the list of its referrers. A tag that
 * names an image is never read nor replaced as a list; the list is then under `sha256-HEX.referrers`, tagged so that
 * collectors of untagged manifests keep it.
 */
export class ReferrersTags {
  readonly #read: ReadManifest;
  readonly #logger: Logger;
  readonly #locks = new KeyedLock();
  /** Subjects of manifests by digest. */
  readonly #subjects = new Map<string, string | undefined>();
  #hasWarned = false;

  constructor(read: ReadManifest, logger: Logger) {
    this.#read = read;
    this.#logger = logger;
  }

  #warnMoved(requester: RegistryRequester, tag: string): void {
    const message = `${requester.name}: tag ${tag} names an image, so its referrers are listed under ${toMovedTag(tag)}`;
    this.#logger.log(this.#hasWarned ? 'debug' : 'warn', message);
    this.#hasWarned = true;
  }

  async #readTag(
    requester: RegistryRequester,
    tag: string,
    subject: string,
    options: CancelOptions,
  ): Promise<TaggedContent | undefined> {
    const content = await this.#read(requester, tag, options);
    if (content === undefined) return undefined;
    const { digest, mediaType } = content.descriptor;
    const parsed = parseManifest(content.bytes, {
      subject: getSubject(requester.name, tag),
      mediaType,
      isReferrersList: true,
    });
    if (digest === subject || parsed.kind === 'image')
      return { digest, index: undefined, referrers: [], isList: false };
    const { index } = parsed;
    const refers = await mapConcurrent(
      index.manifests,
      concurrency,
      (entry) => this.#refersTo(requester, entry, subject, options),
      options,
    );
    return {
      digest,
      index,
      referrers: index.manifests.filter((_, i) => refers[i]),
      isList: mediaType === mediaTypes.ociIndex && refers.every(Boolean),
    };
  }

  async #refersTo(
    requester: RegistryRequester,
    entry: Descriptor,
    subject: string,
    options: CancelOptions,
  ): Promise<boolean> {
    // An index of images has a platform per entry.
    if (entry.platform !== undefined) return false;
    const { digest } = entry;
    if (this.#subjects.has(digest)) return this.#subjects.get(digest) === subject;
    try {
      const content = await this.#read(requester, digest, options);
      if (content !== undefined) {
        const facts = readManifestFacts(content.bytes, getSubject(requester.name, digest));
        this.#subjects.set(digest, facts.subject);
        return facts.subject === subject;
      }
    } catch (error) {
      const isUnreadable =
        error instanceof OpmateError && ['SYNTAX', 'INVALID', 'UNSUPPORTED', 'LIMIT'].includes(error.code);
      if (!isUnreadable) throw error;
    }
    // A missing or unreadable manifest is judged by its entry.
    return entry.artifactType !== undefined;
  }

  /** Returns the manifests that refer to a digest. */
  async list(requester: RegistryRequester, subject: string, options: CancelOptions): Promise<Descriptor[]> {
    const tag = referrersTag(subject);
    const tagged = await this.#readTag(requester, tag, subject, options);
    if (tagged === undefined) return [];
    const moved = await this.#readTag(requester, toMovedTag(tag), subject, options);
    return uniqueByDigest([...tagged.referrers, ...(moved?.referrers ?? [])]);
  }

  /** Adds a stored manifest to the list of its subject. */
  async add(
    requester: RegistryRequester,
    subject: string,
    referrer: Descriptor,
    options: CancelOptions,
  ): Promise<void> {
    this.#subjects.set(referrer.digest, subject);
    const tag = referrersTag(subject);
    await this.#locks.run(tag, async () => {
      const tagged = await this.#readTag(requester, tag, subject, options);
      if (tagged === undefined || tagged.isList)
        return writeList(requester, tag, tagged, [referrer], options);
      this.#warnMoved(requester, tag);
      const moved = await this.#readTag(requester, toMovedTag(tag), subject, options);
      await writeList(requester, toMovedTag(tag), moved, [referrer], options);
    });
  }

  /** Removes a deleted manifest from the list of its subject, and an empty list. */
  async remove(
    requester: RegistryRequester,
    subject: string,
    digest: string,
    options: CancelOptions,
  ): Promise<void> {
    const tag = referrersTag(subject);
    await this.#locks.run(tag, async () => {
      for (const name of [tag, toMovedTag(tag)]) {
        const tagged = await this.#readTag(requester, name, subject, options);
        if (!tagged?.isList || !tagged.referrers.some((entry) => entry.digest === digest)) continue;
        const others = tagged.referrers.filter((entry) => entry.digest !== digest);
        if (others.length === 0 && (await deleteList(requester, tagged.digest, options))) continue;
        await writeList(requester, name, { ...tagged, referrers: others }, [], options);
      }
    });
  }

  /** Stores an image under a tag. Moves a list of referrers under that tag first, unless the registry has the API. */
  async replace<T>(
    requester: RegistryRequester,
    tag: string,
    digest: string,
    options: CancelOptions & { hasApi(subject: string): Promise<boolean> },
    store: () => Promise<T>,
  ): Promise<T> {
    const subject = findSubjectOfTag(tag);
    if (subject === undefined) return store();
    return this.#locks.run(tag, async () => {
      const tagged = await this.#readTag(requester, tag, subject, options);
      const isLost = tagged !== undefined && tagged.digest !== digest && tagged.referrers.length > 0;
      if (isLost && !(await options.hasApi(subject))) {
        this.#warnMoved(requester, tag);
        const moved = await this.#readTag(requester, toMovedTag(tag), subject, options);
        await writeList(requester, toMovedTag(tag), moved, tagged.referrers, options);
      }
      return store();
    });
  }
}

/** Returns the tag of the list whose usual tag names an image. */
function toMovedTag(tag: string): string {
  return `${tag}.referrers`;
}

async function writeList(
  requester: RegistryRequester,
  tag: string,
  known: TaggedContent | undefined,
  more: readonly Descriptor[],
  options: CancelOptions,
): Promise<void> {
  const added = new Set(more.map(({ digest }) => digest));
  const kept = (known?.referrers ?? []).filter(({ digest }) => !added.has(digest));
  const manifests = uniqueByDigest([...kept, ...more]);
  const document = { ...known?.index, schemaVersion: 2, mediaType: mediaTypes.ociIndex, manifests };
  const response = await requester.send('PUT', `manifests/${tag}`, 'push', {
    headers: { 'content-type': mediaTypes.ociIndex },
    body: Buffer.from(JSON.stringify(document)),
    signal: options.signal,
  });
  if (response.status !== 201)
    throw await requester.failure(response, getSubject(requester.name, tag), 'push');
  response.discard();
}

/** Deletes a list by its digest, which no other tag has. Returns false if the registry refuses. */
async function deleteList(
  requester: RegistryRequester,
  digest: string,
  options: CancelOptions,
): Promise<boolean> {
  const response = await requester.send('DELETE', `manifests/${digest}`, 'delete', {
    signal: options.signal,
  });
  response.discard();
  return [200, 202, 204, 404].includes(response.status);
}
