import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { KeyedLock } from '../../core/keyed-lock.js';
import type { Logger } from '../../core/log.js';
import { type ParsedManifest, parseManifest } from '../image/manifest.js';
import { getSubject } from '../image/platform.js';
import type { RegistryRequester } from './registry-request.js';
import type { ManifestContent } from './repository.js';
import { type Descriptor, type ImageIndex, mediaTypes } from '../image/types.js';

/** How many listed manifests are read at a time. */
const concurrency = 6;

/**
 * The tag under which registries without referrers API list what refers to a digest. (Source: distribution
 * specification, "Referrers Tag Schema".)
 */
export function referrersTag(digest: string): string {
  const [algorithm = '', hex = ''] = digest.split(':');
  return `${algorithm.slice(0, 32)}-${hex.slice(0, 64)}`;
}

/** The digest whose referrers a tag would list, or undefined for a tag of another form. */
function subjectOfTag(tag: string): string | undefined {
  const hex = /^sha256-([0-9a-f]{64})$/.exec(tag)?.[1];
  return hex === undefined ? undefined : `sha256:${hex}`;
}

/** Digest of the `subject` of a manifest, if it has one. */
export function subjectDigest(parsed: ParsedManifest): string | undefined {
  return (parsed.kind === 'image' ? parsed.manifest : parsed.index).subject?.digest;
}

/** How a list of referrers describes a manifest. */
export function getReferrer(descriptor: Descriptor, parsed: ParsedManifest): Descriptor {
  const document = parsed.kind === 'image' ? parsed.manifest : parsed.index;
  const artifactType =
    document.artifactType ?? (parsed.kind === 'image' ? parsed.manifest.config.mediaType : undefined);
  return {
    ...descriptor,
    ...(artifactType !== undefined && { artifactType }),
    ...(document.annotations && { annotations: document.annotations }),
  };
}

/** Reads a manifest by tag or digest; undefined if missing. */
type ReadManifest = (
  requester: RegistryRequester,
  reference: string,
  options: CancelOptions,
) => Promise<ManifestContent | undefined>;

/** What a tag of this form names. */
interface Tagged {
  digest: string;
  /** The manifest, where it is an index; other fields than the list are kept on writing. */
  index: ImageIndex | undefined;
  /** Those of its entries that refer to the digest that the tag is for. */
  referrers: Descriptor[];
  /** Whether it lists referrers and nothing else, and so may be written. */
  isList: boolean;
}

/**
 * The lists of referrers of one repository, at registries that have no API for them.
 *
 * Mirroring tags an image that is known by digest alone as `sha256-HEX`, which is also the tag of the list of its
 * referrers. A tag that names an image is never taken for a list nor replaced by one: the list is then kept under
 * `sha256-HEX.referrers`, where no collector of untagged manifests removes it and `list` finds it.
 */
export class ReferrersTags {
  readonly #read: ReadManifest;
  readonly #logger: Logger;
  readonly #locks = new KeyedLock();
  /** Subjects of manifests by digest, which never change. */
  readonly #subjects = new Map<string, string | undefined>();
  #told = false;

  constructor(read: ReadManifest, logger: Logger) {
    this.#read = read;
    this.#logger = logger;
  }

  /** Returns the listed manifests that refer to a digest. */
  async list(requester: RegistryRequester, subject: string, options: CancelOptions): Promise<Descriptor[]> {
    const tag = referrersTag(subject);
    const tagged = await this.#readTag(requester, tag, subject, options);
    if (tagged === undefined) return [];
    const beside = await this.#readTag(requester, besideTag(tag), subject, options);
    return unique([...tagged.referrers, ...(beside?.referrers ?? [])]);
  }

  /** Adds a manifest that has been stored to the list of its subject. */
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
      this.#tell(requester, tag);
      const beside = await this.#readTag(requester, besideTag(tag), subject, options);
      await writeList(requester, besideTag(tag), beside, [referrer], options);
    });
  }

  /** Takes a manifest that has been deleted off the list of its subject; a list of nothing goes as well. */
  async remove(
    requester: RegistryRequester,
    subject: string,
    digest: string,
    options: CancelOptions,
  ): Promise<void> {
    const tag = referrersTag(subject);
    await this.#locks.run(tag, async () => {
      for (const name of [tag, besideTag(tag)]) {
        const tagged = await this.#readTag(requester, name, subject, options);
        if (!tagged?.isList || !tagged.referrers.some((entry) => entry.digest === digest)) continue;
        const others = tagged.referrers.filter((entry) => entry.digest !== digest);
        if (others.length === 0 && (await deleteList(requester, tagged.digest, options))) continue;
        await writeList(requester, name, { ...tagged, referrers: others }, [], options);
      }
    });
  }

  /**
   * Stores an image under a tag. Where that tag lists referrers, and the registry has no API that knows them, the
   * list is kept beside it first.
   */
  async replace<T>(
    requester: RegistryRequester,
    tag: string,
    digest: string,
    options: CancelOptions & { hasApi(subject: string): Promise<boolean> },
    store: () => Promise<T>,
  ): Promise<T> {
    const subject = subjectOfTag(tag);
    if (subject === undefined) return store();
    return this.#locks.run(tag, async () => {
      const tagged = await this.#readTag(requester, tag, subject, options);
      const isLost = tagged !== undefined && tagged.digest !== digest && tagged.referrers.length > 0;
      if (isLost && !(await options.hasApi(subject))) {
        this.#tell(requester, tag);
        const beside = await this.#readTag(requester, besideTag(tag), subject, options);
        await writeList(requester, besideTag(tag), beside, tagged.referrers, options);
      }
      return store();
    });
  }

  #tell(requester: RegistryRequester, tag: string): void {
    const message = `${requester.name}: tag ${tag} names an image, so its referrers are listed under ${besideTag(tag)}`;
    this.#logger.log(this.#told ? 'debug' : 'warn', message);
    this.#told = true;
  }

  async #readTag(
    requester: RegistryRequester,
    tag: string,
    subject: string,
    options: CancelOptions,
  ): Promise<Tagged | undefined> {
    const content = await this.#read(requester, tag, options);
    if (content === undefined) return undefined;
    const { digest, mediaType } = content.descriptor;
    const parsed = parseManifest(content.bytes, { subject: getSubject(requester.name, tag), mediaType });
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
    // An index of images has a platform with each.
    if (entry.platform !== undefined) return false;
    const { digest, mediaType } = entry;
    if (this.#subjects.has(digest)) return this.#subjects.get(digest) === subject;
    try {
      const content = await this.#read(requester, digest, options);
      if (content !== undefined) {
        const parsed = parseManifest(content.bytes, {
          subject: getSubject(requester.name, digest),
          mediaType,
        });
        this.#subjects.set(digest, subjectDigest(parsed));
        return subjectDigest(parsed) === subject;
      }
    } catch (error) {
      const isUnreadable =
        error instanceof OpmateError && ['SYNTAX', 'INVALID', 'UNSUPPORTED', 'LIMIT'].includes(error.code);
      if (!isUnreadable) throw error;
    }
    // What is gone, or of a type of its own, can be told by its entry alone.
    return entry.artifactType !== undefined;
  }
}

/** Where the list is kept when its tag names an image. */
function besideTag(tag: string): string {
  return `${tag}.referrers`;
}

function unique(entries: readonly Descriptor[]): Descriptor[] {
  return [...new Map(entries.map((entry) => [entry.digest, entry])).values()];
}

async function writeList(
  requester: RegistryRequester,
  tag: string,
  known: Tagged | undefined,
  more: readonly Descriptor[],
  options: CancelOptions,
): Promise<void> {
  const fresh = new Set(more.map(({ digest }) => digest));
  const kept = (known?.referrers ?? []).filter(({ digest }) => !fresh.has(digest));
  const manifests = unique([...kept, ...more]);
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

/** Deletes a list by its digest, which no other tag has; false where the registry refuses. */
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
